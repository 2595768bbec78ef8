// Names of this protocol and their canonical counterparts.
import { createHash } from "node:crypto";
import { setOwnProperty } from "../../lib/set-own-property.ts";
import { fail } from "../../model/error.ts";
import type { Finish, FinishReason } from "../../model/event.ts";
import type { Body, Json, JsonObject } from "../../model/values.ts";
import { asObject } from "../json-values.ts";
import { isMultiplierField } from "../requested-amounts.ts";
import { createSourceMemory } from "../source-memory.ts";
import { toSnakeCase } from "../tool-calls.ts";
import { valueFields, type KnownFields, type FieldShape } from "../unknown-fields.ts";

/**
 * ID of this protocol. It also identifies the origin of signatures and of parts that only this
 * protocol understands.
 */
export const ID = "gemini";

/**
 * Stores the source of decoded values, so that an unchanged value is sent verbatim in this
 * protocol.
 */
export const { remember: rememberSource, sourceOf } = createSourceMemory();

export const failMalformed = (param: string, must: string): never =>
  fail("invalid", `${param} ${must}.`, { param, code: "invalid_request" });

export const digest = (of: string, length: number): string =>
  createHash("sha256").update(of).digest("hex").slice(0, length);

/**
 * Fields for the model, the stream, and its form, which are part of the URL in this protocol. A
 * frontend adds them to the body, where both halves read them. They are removed before the request
 * is sent.
 */
export const ADDRESS_FIELDS = ["model", "stream", "alt"] as const;

/** Whether a stream is one growing JSON list. This is the case without `alt=sse`. */
export const isJsonListStream = (body: Body): boolean => body["alt"] === "json";

/**
 * Known top-level fields of a request, by their camel case name. The API also accepts snake case.
 */
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
 * Returns the camel case names by their snake case names: `max_output_tokens` → `maxOutputTokens`.
 * Client names are looked up and never converted, because they can be any text and there can be
 * thousands.
 */
export const snakeCaseNames = (names: Iterable<string>): ReadonlyMap<string, string> =>
  new Map([...names].map((name) => [toSnakeCase(name), name]));

/**
 * Google's own fields, which the common form cannot represent. The client sets them, or `prepare`
 * rejects them.
 */
export const PASSED_THROUGH_FIELDS: ReadonlySet<string> = new Set([
  "cachedContent",
  "continuationToken",
  "labels",
  "safetySettings",
]);

const CAMEL_CASE_NAME: ReadonlyMap<string, string> = snakeCaseNames(KNOWN_TOP_LEVEL_FIELDS);

const toCamelCase = (field: string): string => CAMEL_CASE_NAME.get(field) ?? field;

/** Whether the request encoder handles a field, by encoding its meaning or by omitting it. */
export const knowsField = (field: string): boolean =>
  (KNOWN_TOP_LEVEL_FIELDS.has(toCamelCase(field)) &&
    !PASSED_THROUGH_FIELDS.has(toCamelCase(field))) ||
  isMultiplierField(field);

/**
 * Members of `generationConfig` that the request encoder sets, or that request more than the common
 * form can represent.
 */
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

/**
 * Returns the members of `generationConfig` that no codec handles. A client of another protocol may
 * add only these. All other members are reported as lost.
 */
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
 * Whether an unknown field may be meant for this API. Google rejects a request with one unknown
 * name, so other vendors' fields must not be sent. New fields of this API are recognized by their
 * camel case spelling, which no other vendor uses.
 */
export const isGeminiFieldName = (field: string): boolean =>
  KNOWN_TOP_LEVEL_FIELDS.has(toCamelCase(field)) || /^[a-z]+(?:[A-Z][a-z0-9]*)+$/.test(field);

/** Finish reasons for a response that a filter withheld or aborted. */
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

/** Finish reasons for a failed tool call. A retry may succeed. */
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

/** Returns the finish reason. A reason of this protocol that came with the response is kept. */
export const formatFinishReason = ({ reason, detail }: Pick<Finish, "reason" | "detail">): string =>
  detail !== undefined && /^[A-Z][A-Z_]{2,63}$/.test(detail) ? detail : WIRE_REASONS[reason];

/**
 * Parses a finish reason. "broken" means that there is no usable response. An unknown reason, which
 * may be newer than the gateway, is kept in `detail`.
 */
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

/**
 * Known fields of a request body below the top level. Members that only this protocol has are not
 * listed. They are carried in `ext` by their path.
 */
const BYTES: KnownFields = {
  inlineData: valueFields("mimeType data"),
  fileData: valueFields("mimeType fileUri"),
};

const READ = ["text", "inlineData", "fileData", "functionCall", "functionResponse"];

const RESPONDED: KnownFields = { ...valueFields("id name response"), parts: BYTES };

/** A part without any known content is opaque: it is sent as a whole or not at all. */
const PART: FieldShape = (part) =>
  READ.some((kind) => part[kind] !== undefined)
    ? {
        ...valueFields("text thought thoughtSignature"),
        ...BYTES,
        functionCall: valueFields("id name args"),
        functionResponse: RESPONDED,
      }
    : null;

export const KNOWN_INSIDE: KnownFields = {
  contents: { role: null, parts: PART },
  systemInstruction: { role: null, parts: PART },
  // Each hosted tool is one member and is sent as a whole. Other protocols receive only the request
  // for a search, so all members of a search count as unknown.
  tools: (tool) => ({
    ...valueFields(Object.keys(tool).join(" ")),
    googleSearch: {},
    googleSearchRetrieval: {},
    functionDeclarations: valueFields("name description parameters parametersJsonSchema"),
  }),
  toolConfig: { functionCallingConfig: valueFields("mode allowedFunctionNames") },
  generationConfig: {
    ...valueFields(
      "temperature topP topK maxOutputTokens stopSequences candidateCount seed logprobs",
    ),
    ...valueFields("presencePenalty frequencyPenalty responseLogprobs responseModalities"),
    ...valueFields("responseMimeType responseSchema responseJsonSchema"),
    thinkingConfig: valueFields("includeThoughts thinkingBudget thinkingLevel"),
  },
};
