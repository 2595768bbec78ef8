// This wire has two names for every member, `systemInstruction` and `system_instruction`, and takes one object for a list of
// one. Whatever looks at a body looks at one spelling, and that is the one that leaves: of a bound that stood there twice, the
// gateway would hold one and the provider keep the other.
import { setOwnProperty } from "../../lib/set-own-property.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { AllowedContent, FieldAllowlist, AllowedFields } from "../../plugin/index.ts";
import { isObject } from "../json-values.ts";
import { toSnakeCase } from "../tool-names.ts";
import { failMalformed, snakeCaseNames } from "./constants.ts";

/** By the first of its two names. null: a value, or what belongs to another party. */
interface NameTree {
  readonly [member: string]: NameTree | null;
}

const valueNames = (names: string): NameTree =>
  Object.fromEntries(names.split(" ").map((name) => [name, null]));

const BYTES: NameTree = {
  inlineData: valueNames("mimeType data displayName"),
  fileData: valueNames("mimeType fileUri displayName"),
};
const PART: NameTree = {
  ...valueNames("text thought thoughtSignature mediaResolution executableCode codeExecutionResult"),
  ...valueNames("toolCall toolResponse videoMetadata partMetadata"),
  ...BYTES,
  functionCall: valueNames("id name args"),
  functionResponse: { ...valueNames("id name response willContinue scheduling"), parts: BYTES },
};
const CONTENT: NameTree = { role: null, parts: PART };

const REQUEST: NameTree = {
  ...valueNames("model cachedContent continuationToken labels serviceTier store"),
  contents: CONTENT,
  systemInstruction: CONTENT,
  tools: {
    functionDeclarations: valueNames(
      "name description behavior parameters parametersJsonSchema response responseJsonSchema",
    ),
    ...valueNames(
      "googleSearch googleSearchRetrieval codeExecution urlContext googleMaps computerUse",
    ),
    fileSearch: valueNames("fileSearchStoreNames topK metadataFilter"),
    mcpServers: null,
  },
  toolConfig: {
    functionCallingConfig: valueNames("mode allowedFunctionNames streamFunctionCallArguments"),
    ...valueNames("retrievalConfig includeServerSideToolInvocations"),
  },
  safetySettings: valueNames("category threshold method"),
  generationConfig: {
    ...valueNames(
      "audioTimestamp candidateCount enableEnhancedCivicAnswers frequencyPenalty logprobs",
    ),
    ...valueNames(
      "maxOutputTokens mediaResolution presencePenalty responseFormat responseJsonSchema",
    ),
    ...valueNames("responseLogprobs responseMimeType responseModalities responseSchema seed"),
    ...valueNames("speechConfig stopSequences temperature topK topP"),
    thinkingConfig: valueNames("includeThoughts thinkingBudget thinkingLevel"),
    imageConfig: valueNames("aspectRatio imageSize numberOfImages"),
  },
};

const BODY: NameTree = { ...REQUEST, generateContentRequest: REQUEST };

const VECTOR: NameTree = {
  ...valueNames("model taskType title outputDimensionality"),
  content: CONTENT,
};
/** A request for one vector, and a list of such requests. */
const VECTORS: NameTree = { ...VECTOR, requests: VECTOR };

/** Lists of messages. */
const LISTS: ReadonlySet<string> = new Set([
  "contents",
  "functionDeclarations",
  "parts",
  "requests",
  "safetySettings",
  "tools",
]);

/** The top of a body, each field by the first of its names. */
export const TOP_LEVEL_FIELDS: readonly string[] = Object.keys(BODY);

function* namesIn(of: NameTree): Generator<string> {
  for (const [name, inside] of Object.entries(of)) {
    yield name;
    if (inside) yield* namesIn(inside);
  }
}

const CAMEL_CASE_NAME: ReadonlyMap<string, string> = snakeCaseNames([
  ...namesIn(BODY),
  ...namesIn(VECTORS),
]);

/** The same body where nothing in it is spelt otherwise. What stands there by both names is refused. */
export const normalizeBody = (body: Body): Body =>
  normalizeObject(body as JsonObject, BODY, "") as Body;

/** The same of a body that asks for vectors. */
export const normalizeEmbeddingBody = (body: Body): Body =>
  normalizeObject(body as JsonObject, VECTORS, "") as Body;

/** The top of a body that asks for vectors. */
export const EMBEDDING_TOP_LEVEL_FIELDS: readonly string[] = Object.keys(VECTORS);

/** The value of one field of a body, by the first of its names. */
export const normalizeField = (field: string, value: Json): Json =>
  normalizeValue(value, BODY[field] ?? VECTORS[field] ?? null, LISTS.has(field), field);

/** The same review of bodies as clients write them: what may leave by the first of its names may leave by the other. */
export const allowBothSpellings = (review: FieldAllowlist): FieldAllowlist =>
  review.map(([why, fields]) => [why, addSnakeCase(fields)]);

function addSnakeCase(fields: AllowedFields): AllowedFields {
  const both: Record<string, AllowedContent> = {};
  for (const [name, inside] of Object.entries(fields))
    both[name] = both[toSnakeCase(name)] =
      typeof inside === "string" ? inside : addSnakeCase(inside as AllowedFields);
  return both;
}

function normalizeObject(of: JsonObject, known: NameTree, at: string): JsonObject {
  let out: Record<string, Json | undefined> | undefined;
  for (const key in of) {
    const rawValue = of[key];
    // What is absent may stand there as a key.
    const name = rawValue === undefined ? key : nameOf(key, known);
    const path = at === "" ? name : `${at}.${name}`;
    if (name !== key && of[name] !== undefined)
      failMalformed(path, `stands there twice, as ${name} and as ${key}`);
    const shape = Object.hasOwn(known, name) ? known[name]! : null;
    const value =
      rawValue === undefined ? rawValue : normalizeValue(rawValue, shape, LISTS.has(name), path);
    if (!out && (name !== key || value !== rawValue)) out = membersBefore(of, key);
    if (out) setOwnProperty(out, name, value);
  }
  return out ?? of;
}

function normalizeValue(rawValue: Json, shape: NameTree | null, isList: boolean, at: string): Json {
  if (shape === null || typeof rawValue !== "object" || rawValue === null) return rawValue;
  if (!Array.isArray(rawValue)) {
    const one = normalizeObject(rawValue as JsonObject, shape, at);
    return isList ? [one] : one;
  }
  let out: Json[] | undefined;
  for (const [i, one] of (rawValue as readonly Json[]).entries()) {
    const value = isObject(one) ? normalizeObject(one, shape, `${at}[${i}]`) : one;
    if (value !== one) (out ??= [...(rawValue as readonly Json[])])[i] = value;
  }
  return out ?? rawValue;
}

/** A name that this wire has by another spelling, by its first; any other as it is. */
function nameOf(key: string, known: NameTree): string {
  const name = CAMEL_CASE_NAME.get(key);
  return name !== undefined && Object.hasOwn(known, name) ? name : key;
}

/** What stands before a member, once one of them has to be said anew. */
function membersBefore(of: JsonObject, until: string): Record<string, Json | undefined> {
  const out: Record<string, Json | undefined> = {};
  for (const key in of) {
    if (key === until) break;
    setOwnProperty(out, key, of[key]);
  }
  return out;
}
