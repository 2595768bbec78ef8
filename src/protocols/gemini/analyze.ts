// Analyzes a request body from a client or for a provider. Returns the maximum cost, and which
// tools the provider would run and which data it would store.
import type { Body, JsonObject } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { referencedFeatures, hostedToolFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import type { Feature } from "../../model/facts.ts";
import { isSealedBytes } from "../proof-envelope.ts";
import { asList, asNumber, asObject, asObjects, asText } from "../json-values.ts";
import { normalizeBody } from "./normalize-field-names.ts";

/** Members of a part that do not count as media. */
const WORDS: ReadonlySet<string> = new Set([
  "text",
  "thought",
  "thoughtSignature",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
]);

export function analyze(body: Body): RequestFacts {
  const spelt = normalizeBody(body);
  const counted = spelt["contents"] === undefined && asObject(spelt["generateContentRequest"]);
  const fields = (counted || spelt) as JsonObject;
  const named = findReferences(body);
  const features = referencedFeatures(named);
  let sealed = false;
  const media = { count: 0, bytes: 0 };
  for (const content of [...asObjects(fields["contents"]), asObject(fields["systemInstruction"])])
    for (const part of asObjects(content?.["parts"])) {
      needs(part, media, features);
      sealed ||= isSealedBytes(asText(part["thoughtSignature"]) ?? "");
    }
  if (
    asObjects(fields["tools"]).some(
      (tool) => tool["functionDeclarations"] || hostedToolFeatures(tool) === null,
    )
  )
    features.add("tools");
  if (fields["stream"] === true) features.add("stream");
  if (fields["systemInstruction"]) features.add("system");
  const config = asObject(fields["generationConfig"]);
  if (config) addConfigFeatures(config, features);
  for (const modality of asList(config?.["responseModalities"])) {
    const made = asText(modality)?.toUpperCase();
    if (made === "AUDIO") features.add("audio");
    else if (made !== "TEXT") media.count++;
  }
  const money = analyzeCost(fields, named, { maxOutput: asNumber(config?.["maxOutputTokens"]) });
  if ((money.n ?? 1) > 1) features.add("n");
  return {
    features: [...features],
    references: named,
    ...money,
    ...(media.count > 0 && { media }),
    // An envelope with another provider's signature is opened for that provider and is not a valid
    // signature for Google.
    ...(sealed && { requiresTranslation: true }),
  };
}

function addConfigFeatures(config: JsonObject, features: Set<Feature>): void {
  const thinking = asObject(config["thinkingConfig"]);
  if (thinking && thinking["thinkingBudget"] !== 0) features.add("reasoning");
  if (config["responseSchema"] || config["responseJsonSchema"]) features.add("json_schema");
  else if (config["responseMimeType"] === "application/json") features.add("json");
  if (config["responseLogprobs"] === true) features.add("logprobs");
}

/** Model features by the MIME type of the media. */
const SEEN: readonly (readonly [type: RegExp, feature: Feature])[] = [
  [/^image\//, "vision"],
  [/^audio\//, "audio"],
  [/^application\/pdf$/, "documents"],
];

/** Adds the features that a part requires and the size of its media. */
export function needs(
  part: JsonObject,
  media: { count: number; bytes: number },
  features: Set<Feature>,
): void {
  const mime = asText((asObject(part["inlineData"]) ?? asObject(part["fileData"]))?.["mimeType"]);
  if (mime !== undefined)
    for (const [type, feature] of SEEN) if (type.test(mime)) features.add(feature);
  for (const name in part) {
    if (WORDS.has(name)) continue;
    const of = asObject(part[name]);
    if (!of) continue;
    media.count++;
    media.bytes += asText(of["data"])?.length ?? 0;
  }
}
