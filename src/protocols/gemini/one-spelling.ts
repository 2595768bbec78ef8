// This wire has two names for every member, `systemInstruction` and `system_instruction`, and takes one object for a list of
// one. Whatever looks at a body looks at one spelling, and that is the one that leaves: of a bound that stood there twice, the
// gateway would hold one and the provider keep the other.
import { put } from "../../lib/member.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import type { Inside, Review, Reviewed } from "../../plugin/index.ts";
import { isObject } from "../json.ts";
import { snake } from "../names.ts";
import { malformed, secondNames } from "./words.ts";

/** By the first of its two names. null: a value, or what belongs to another party. */
interface Spellings {
  readonly [member: string]: Spellings | null;
}

const plain = (names: string): Spellings =>
  Object.fromEntries(names.split(" ").map((name) => [name, null]));

const BYTES: Spellings = {
  inlineData: plain("mimeType data displayName"),
  fileData: plain("mimeType fileUri displayName"),
};
const PART: Spellings = {
  ...plain("text thought thoughtSignature mediaResolution executableCode codeExecutionResult"),
  ...plain("toolCall toolResponse videoMetadata partMetadata"),
  ...BYTES,
  functionCall: plain("id name args"),
  functionResponse: { ...plain("id name response willContinue scheduling"), parts: BYTES },
};
const CONTENT: Spellings = { role: null, parts: PART };

const REQUEST: Spellings = {
  ...plain("model cachedContent continuationToken labels serviceTier store"),
  contents: CONTENT,
  systemInstruction: CONTENT,
  tools: {
    functionDeclarations: plain(
      "name description behavior parameters parametersJsonSchema response responseJsonSchema",
    ),
    ...plain("googleSearch googleSearchRetrieval codeExecution urlContext googleMaps computerUse"),
    fileSearch: plain("fileSearchStoreNames topK metadataFilter"),
    mcpServers: null,
  },
  toolConfig: {
    functionCallingConfig: plain("mode allowedFunctionNames streamFunctionCallArguments"),
    ...plain("retrievalConfig includeServerSideToolInvocations"),
  },
  safetySettings: plain("category threshold method"),
  generationConfig: {
    ...plain("audioTimestamp candidateCount enableEnhancedCivicAnswers frequencyPenalty logprobs"),
    ...plain("maxOutputTokens mediaResolution presencePenalty responseFormat responseJsonSchema"),
    ...plain("responseLogprobs responseMimeType responseModalities responseSchema seed"),
    ...plain("speechConfig stopSequences temperature topK topP"),
    thinkingConfig: plain("includeThoughts thinkingBudget thinkingLevel"),
    imageConfig: plain("aspectRatio imageSize numberOfImages"),
  },
};

const BODY: Spellings = { ...REQUEST, generateContentRequest: REQUEST };

const VECTOR: Spellings = {
  ...plain("model taskType title outputDimensionality"),
  content: CONTENT,
};
/** A request for one vector, and a list of such requests. */
const VECTORS: Spellings = { ...VECTOR, requests: VECTOR };

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
export const TOP: readonly string[] = Object.keys(BODY);

function* namesIn(of: Spellings): Generator<string> {
  for (const [name, inside] of Object.entries(of)) {
    yield name;
    if (inside) yield* namesIn(inside);
  }
}

const FIRST: ReadonlyMap<string, string> = secondNames([...namesIn(BODY), ...namesIn(VECTORS)]);

/** The same body where nothing in it is spelt otherwise. What stands there by both names is refused. */
export const inOneSpelling = (body: Body): Body => spelt(body as JsonObject, BODY, "") as Body;

/** The same of a body that asks for vectors. */
export const vectorsInOneSpelling = (body: Body): Body =>
  spelt(body as JsonObject, VECTORS, "") as Body;

/** The top of a body that asks for vectors. */
export const TOP_OF_VECTORS: readonly string[] = Object.keys(VECTORS);

/** The value of one field of a body, by the first of its names. */
export const fieldSpelt = (field: string, value: Json): Json =>
  within(value, BODY[field] ?? VECTORS[field] ?? null, LISTS.has(field), field);

/** The same review of bodies as clients write them: what may leave by the first of its names may leave by the other. */
export const reviewedInBoth = (review: Review): Review =>
  review.map(([why, fields]) => [why, bothIn(fields)]);

function bothIn(fields: Reviewed): Reviewed {
  const both: Record<string, Inside> = {};
  for (const [name, inside] of Object.entries(fields))
    both[name] = both[snake(name)] =
      typeof inside === "string" ? inside : bothIn(inside as Reviewed);
  return both;
}

function spelt(of: JsonObject, known: Spellings, at: string): JsonObject {
  let out: Record<string, Json | undefined> | undefined;
  for (const key in of) {
    const said = of[key];
    // What is absent may stand there as a key.
    const name = said === undefined ? key : nameOf(key, known);
    const path = at === "" ? name : `${at}.${name}`;
    if (name !== key && of[name] !== undefined)
      malformed(path, `stands there twice, as ${name} and as ${key}`);
    const shape = Object.hasOwn(known, name) ? known[name]! : null;
    const value = said === undefined ? said : within(said, shape, LISTS.has(name), path);
    if (!out && (name !== key || value !== said)) out = before(of, key);
    if (out) put(out, name, value);
  }
  return out ?? of;
}

function within(said: Json, shape: Spellings | null, isList: boolean, at: string): Json {
  if (shape === null || typeof said !== "object" || said === null) return said;
  if (!Array.isArray(said)) {
    const one = spelt(said as JsonObject, shape, at);
    return isList ? [one] : one;
  }
  let out: Json[] | undefined;
  for (const [i, one] of (said as readonly Json[]).entries()) {
    const value = isObject(one) ? spelt(one, shape, `${at}[${i}]`) : one;
    if (value !== one) (out ??= [...(said as readonly Json[])])[i] = value;
  }
  return out ?? said;
}

/** A name that this wire has by another spelling, by its first; any other as it is. */
function nameOf(key: string, known: Spellings): string {
  const name = FIRST.get(key);
  return name !== undefined && Object.hasOwn(known, name) ? name : key;
}

/** What stands before a member, once one of them has to be said anew. */
function before(of: JsonObject, until: string): Record<string, Json | undefined> {
  const out: Record<string, Json | undefined> = {};
  for (const key in of) {
    if (key === until) break;
    put(out, key, of[key]);
  }
  return out;
}
