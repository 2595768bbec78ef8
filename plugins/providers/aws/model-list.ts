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
import { isClaude } from "./claude.ts";
import { isAmazonImageModel, isStability } from "./images.ts";

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

// Selects the API for a model by the model's name or by the operator's patterns.

type ModelApi =
  | "claude"
  | "converse"
  | "titan"
  | "cohere"
  | "pictures"
  | "rerank"
  | "openai"
  | "mantle"
  | "mantle claude";

/** Model patterns as configured by the operator. */
interface ApiPatterns {
  readonly claude: readonly string[];
  readonly openai: readonly string[];
  readonly mantle: readonly string[];
  /**
   * Whether a guardrail applies to chat. Claude then uses Converse too, which supports guardrails.
   */
  readonly hasGuardrail: boolean;
}

/** Returns a predicate that selects the models of an API. Each model belongs to exactly one API. */
export const usesApi =
  (patterns: ApiPatterns) =>
  (way: ModelApi) =>
  (model: string): boolean =>
    apiFor(model, patterns) === way;

function apiFor(model: string, apiPatterns: ApiPatterns): ModelApi {
  const fits = (patterns: readonly string[]) => patterns.some((pattern) => isLike(pattern, model));
  if (fits(apiPatterns.mantle)) return isClaude(model) ? "mantle claude" : "mantle";
  if (fits(apiPatterns.openai)) return "openai";
  if (isClaude(model) || fits(apiPatterns.claude))
    return apiPatterns.hasGuardrail ? "converse" : "claude";
  if (/(?:^|[./])amazon\.titan-embed-text/.test(model)) return "titan";
  if (/(?:^|[./])cohere\.embed-/.test(model)) return "cohere";
  if (isAmazonImageModel(model) || isStability(model)) return "pictures";
  return /(?:^|[./])(?:cohere|amazon)\.rerank-/.test(model) ? "rerank" : "converse";
}

function isLike(pattern: string, model: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === model;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return (
    model.length >= head.length + tail.length && model.startsWith(head) && model.endsWith(tail)
  );
}
