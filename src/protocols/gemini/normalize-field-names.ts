// Normalizes bodies to one spelling. This protocol has two names for every member,
// `systemInstruction` and `system_instruction`, and accepts one object in place of a list with one
// element. All checks and the outgoing request use the same spelling. Otherwise, if a limit were
// present under both names, the gateway could enforce one and the provider the other.
import { setOwnProperty } from "../../lib/set-own-property.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { AllowedContent, FieldAllowlist, AllowedFields } from "../../plugin/index.ts";
import { isObject } from "../json-values.ts";
import { toSnakeCase } from "../tool-calls.ts";
import { failMalformed, snakeCaseNames } from "./constants.ts";

/**
 * Members by their camel case names. null: a plain value, or content that belongs to another party.
 */
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
/** The body of an embedding request: one request or a list of requests. */
const VECTORS: NameTree = { ...VECTOR, requests: VECTOR };

/** Members that are lists of messages. */
const LISTS: ReadonlySet<string> = new Set([
  "contents",
  "functionDeclarations",
  "parts",
  "requests",
  "safetySettings",
  "tools",
]);

/** Top-level fields of a body, by their camel case names. */
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

/**
 * Returns a normalized body, or the same body if nothing changes. Throws if a member is present
 * under both names.
 */
export const normalizeBody = (body: Body): Body =>
  normalizeObject(body as JsonObject, BODY, "") as Body;

/** Returns a normalized body of an embedding request. */
export const normalizeEmbeddingBody = (body: Body): Body =>
  normalizeObject(body as JsonObject, VECTORS, "") as Body;

/** Top-level fields of an embedding request. */
export const EMBEDDING_TOP_LEVEL_FIELDS: readonly string[] = Object.keys(VECTORS);

/** Returns the normalized value of a top-level field, which is given by its camel case name. */
export const normalizeField = (field: string, value: Json): Json =>
  normalizeValue(value, BODY[field] ?? VECTORS[field] ?? null, LISTS.has(field), field);

/**
 * Returns an allowlist that also contains the snake case names, because clients can use either
 * spelling.
 */
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
    // An undefined member can be present as a key.
    const name = rawValue === undefined ? key : nameOf(key, known);
    const path = at === "" ? name : `${at}.${name}`;
    if (name !== key && of[name] !== undefined)
      failMalformed(path, `occurs twice, as ${name} and as ${key}`);
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

/** Returns the camel case name of a known member. Other names are returned unchanged. */
function nameOf(key: string, known: NameTree): string {
  const name = CAMEL_CASE_NAME.get(key);
  return name !== undefined && Object.hasOwn(known, name) ? name : key;
}

/**
 * Returns the members that precede a given member. They are copied when a later member has to be
 * changed.
 */
function membersBefore(of: JsonObject, until: string): Record<string, Json | undefined> {
  const out: Record<string, Json | undefined> = {};
  for (const key in of) {
    if (key === until) break;
    setOwnProperty(out, key, of[key]);
  }
  return out;
}
