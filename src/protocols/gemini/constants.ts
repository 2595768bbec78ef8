// The words of this wire and their canonical counterparts.
import { setOwnProperty } from "../../lib/set-own-property.ts";
import { createHash } from "node:crypto";
import type { Finish, FinishReason } from "../../model/event.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import { fail } from "../../model/error.ts";
import { asObject } from "../json-values.ts";
import { createSourceMemory } from "../source-memory.ts";
import { isMultiplierField } from "../requested-amounts.ts";
import { toSnakeCase } from "../tool-names.ts";

/** This protocol, as an origin too: of signatures, and of parts that only it understands. */
export const ID = "gemini";

/** What a value was read from: an untouched one goes back to this wire word for word. */
export const { remember: rememberSource, sourceOf } = createSourceMemory();

export const failMalformed = (param: string, must: string): never =>
  fail("invalid", `${param} ${must}.`, { param, code: "invalid_request" });

export const digest = (of: string, length: number): string =>
  createHash("sha256").update(of).digest("hex").slice(0, length);

/**
 * On this wire the model, the stream and its form stand in the address. A frontend puts them beside the body's own fields, where
 * both halves read them; none of them leaves.
 */
export const ADDRESS_FIELDS = ["model", "stream", "alt"] as const;

/** Without `alt=sse` a stream is one JSON list that grows. */
export const isJsonListStream = (body: Body): boolean => body["alt"] === "json";

/** All that stands at the top of a request, in either spelling that the API reads. */
const KNOWN_TOP_LEVEL_FIELDS: ReadonlySet<string> = new Set([
  "cachedContent",
  "contents",
  "continuationToken",
  "generateContentRequest",
  "generationConfig",
  "labels",
  "safetySettings",
  "serviceTier",
  "store",
  "systemInstruction",
  "toolConfig",
  "tools",
]);

/**
 * The first names of members by their second ones: `max_output_tokens` → `maxOutputTokens`. A client's name is looked up, never
 * rewritten: it may be any text, and there may be thousands.
 */
export const snakeCaseNames = (names: Iterable<string>): ReadonlyMap<string, string> =>
  new Map([...names].map((name) => [toSnakeCase(name), name]));

/** Google's own, of which the common vocabulary has no word: they are the client's to set, or for `prepare` to refuse. */
export const PASSED_THROUGH_FIELDS: ReadonlySet<string> = new Set([
  "cachedContent",
  "continuationToken",
  "labels",
  "safetySettings",
]);

const CAMEL_CASE_NAME: ReadonlyMap<string, string> = snakeCaseNames(KNOWN_TOP_LEVEL_FIELDS);
const toCamelCase = (field: string): string => CAMEL_CASE_NAME.get(field) ?? field;

/** What `request` says in its own words, or leaves out. */
export const knowsField = (field: string): boolean =>
  (KNOWN_TOP_LEVEL_FIELDS.has(toCamelCase(field)) &&
    !PASSED_THROUGH_FIELDS.has(toCamelCase(field))) ||
  isMultiplierField(field);

/** Members of a configuration that are said in the request's own words, or that ask for more than it does. */
const GENERATION_CONFIG_FIELDS: ReadonlySet<string> = new Set([
  "audioTimestamp",
  "imageConfig",
  "logprobs",
  "maxOutputTokens",
  "presencePenalty",
  "frequencyPenalty",
  "responseFormat",
  "responseJsonSchema",
  "responseLogprobs",
  "responseMimeType",
  "responseModalities",
  "responseSchema",
  "seed",
  "speechConfig",
  "stopSequences",
  "temperature",
  "thinkingConfig",
  "topK",
  "topP",
]);

const GENERATION_CONFIG_CAMEL_CASE: ReadonlyMap<string, string> =
  snakeCaseNames(GENERATION_CONFIG_FIELDS);

/** What another protocol's client may add to a configuration: what no codec knows. */
export function parseExtraConfig(raw: unknown, lose: (field: string) => void): JsonObject {
  const kept: Record<string, Json> = {};
  const of = asObject(raw);
  for (const member in of)
    if (
      GENERATION_CONFIG_FIELDS.has(GENERATION_CONFIG_CAMEL_CASE.get(member) ?? member) ||
      isMultiplierField(member)
    )
      lose(`generationConfig.${member}`);
    else setOwnProperty(kept, member, of[member]);
  return kept;
}

/**
 * Whether a field that no codec knows may be meant for this API. It refuses a request for one unknown name, so other
 * vendors' knobs must stay behind; what is newer than us is told from them by its spelling, which no other vendor uses.
 */
export const isGeminiFieldName = (field: string): boolean =>
  KNOWN_TOP_LEVEL_FIELDS.has(toCamelCase(field)) || /^[a-z]+(?:[A-Z][a-z0-9]*)+$/.test(field);

/** The answer was made and withheld, or broken off, by a filter. */
const FILTERED_REASONS: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "LANGUAGE",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
]);

/** The model did not manage to call a tool: asked again, it may. */
const RETRYABLE_REASONS: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "MALFORMED_RESPONSE",
  "MISSING_THOUGHT_SIGNATURE",
  "TOO_MANY_TOOL_CALLS",
  "UNEXPECTED_TOOL_CALL",
]);

const WIRE_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: "STOP",
  stop_sequence: "STOP",
  tool_calls: "STOP",
  length: "MAX_TOKENS",
  context: "MAX_TOKENS",
  filtered: "SAFETY",
  refusal: "SAFETY",
  pause: "CONTINUATION",
  other: "OTHER",
};

/** The end's name here: the one that it came with, if that is one of this wire. */
export const formatFinishReason = ({ reason, detail }: Pick<Finish, "reason" | "detail">): string =>
  detail !== undefined && /^[A-Z][A-Z_]{2,63}$/.test(detail) ? detail : WIRE_REASONS[reason];

/** What a named end means. "broken": it is no answer at all. A name that is newer than us stays in `detail`. */
export function parseFinishReason(
  reason: string,
  calls: boolean,
): { reason: FinishReason | "broken"; detail?: string } {
  if (reason === "STOP") return { reason: calls ? "tool_calls" : "stop" };
  if (reason === "MAX_TOKENS") return { reason: "length" };
  if (reason === "CONTINUATION") return { reason: "pause", detail: reason };
  if (FILTERED_REASONS.has(reason)) return { reason: "filtered", detail: reason };
  if (RETRYABLE_REASONS.has(reason)) return { reason: "broken", detail: reason };
  return calls ? { reason: "tool_calls", detail: reason } : { reason: "other", detail: reason };
}
