// Lists the models that the account can call: foundation models, and the inference profiles through
// which most of them are called.
import {
  fail,
  type JsonObject,
  type Operation,
  type ModelInfo,
  type ProviderClient,
} from "tollgate/plugin";
import { listOf, objectOf, parsed, textOf } from "./json.ts";
import { parseAwsError } from "./errors.ts";

/** Maximum number of pages of profiles. */
const MAX_PAGES = 20;

export async function fetchModelList(line: ProviderClient, control: string): Promise<ModelInfo[]> {
  const { modelSummaries } = await fetchJson(line, `${control}/foundation-models`);
  const kinds = new Map<string, Operation>();
  const models: ModelInfo[] = [];
  for (const row of listOf(modelSummaries).map(objectOf)) {
    const model = textOf(row?.["modelId"]);
    const kind = row && operationOf(row);
    if (model === undefined || kind === undefined) continue;
    kinds.set(model, kind);
    if (listOf(row!["inferenceTypesSupported"]).includes("ON_DEMAND"))
      models.push({ model, operation: kind, name: textOf(row!["modelName"]) });
  }
  let token = "";
  for (let turn = 0; turn < MAX_PAGES; turn++) {
    const page = await fetchJson(line, `${control}/inference-profiles?maxResults=1000${token}`);
    for (const row of listOf(page["inferenceProfileSummaries"]).map(objectOf))
      models.push(...toProfileModels(row ?? {}, kinds));
    const next = textOf(page["nextToken"]);
    if (next === undefined) break;
    token = `&nextToken=${encodeURIComponent(next)}`;
  }
  return models;
}

function operationOf(row: JsonObject): Operation | undefined {
  const makes = listOf(row["outputModalities"]);
  if (/rerank/.test(textOf(row["modelId"]) ?? "")) return "rerank";
  if (makes.includes("EMBEDDING")) return "embedding";
  return makes.includes("TEXT") ? "chat" : undefined;
}

/** Returns the models of a profile. A profile has the operation of the models behind it. */
function toProfileModels(row: JsonObject, kinds: ReadonlyMap<string, Operation>): ModelInfo[] {
  const model = textOf(row["inferenceProfileId"]);
  const behind = textOf(objectOf(listOf(row["models"])[0])?.["modelArn"])
    ?.split("/")
    .at(-1);
  const kind = kinds.get(behind ?? "");
  if (model === undefined || kind === undefined || row["status"] !== "ACTIVE") return [];
  return [{ model, operation: kind, name: textOf(row["inferenceProfileName"]) }];
}

async function fetchJson(line: ProviderClient, url: string): Promise<JsonObject> {
  const answer = await line.fetch(url, { headers: { accept: "application/json" } });
  const body = Buffer.from(await answer.arrayBuffer());
  if (!answer.ok) {
    const { kind, message } = parseAwsError(
      answer.status,
      Object.fromEntries(answer.headers),
      body,
    );
    return fail(kind, message);
  }
  return parsed(body) ?? fail("upstream", "The model list is not a JSON object.");
}
