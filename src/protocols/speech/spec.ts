// Fields, dialects, and usage that both halves of the speech protocol share.
import { estimateSpeechUsage } from "../../model/operations/speech-operation.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, JsonObject, Opt } from "../../model/values.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { analyzeFields } from "../cost-analysis.ts";
import { asText, asCount, ownEntry } from "../json-values.ts";
import { valueFields } from "../references/index.ts";

/** The protocol's name, the fields that it knows, and the media types of its audio. */
export const ID = "speech";

/** Field that selects raw audio or events. Only this protocol has it. */
export const STREAM_FORMAT = "stream_format";

/** Fields that the common form can express, under the same or another name. */
const COMMON_FIELDS: readonly string[] = [
  "model",
  "input",
  "voice",
  "instructions",
  "response_format",
  "speed",
  "stream",
];

export const knowsField = (field: string): boolean =>
  field === STREAM_FORMAT || COMMON_FIELDS.includes(field);

const MIMES: { readonly [format: string]: string } = {
  mp3: "audio/mpeg",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/pcm",
};

const EVENT_STREAM = "text/event-stream; charset=utf-8";

export const wantsEvents = (body: Body): boolean => body[STREAM_FORMAT] === "sse";

/** Returns the media type of the response, for use if the provider sends no media type. */
export const mimeOf = (body: Body): string =>
  wantsEvents(body)
    ? EVENT_STREAM
    : (ownEntry(MIMES, body["response_format"] ?? "mp3") ?? "application/octet-stream");

/**
 * Differences between backends that use this protocol. A dialect is plain data, so a provider can
 * be defined without code. Default for every field: the behavior of OpenAI.
 */
export interface SpeechDialect {
  /**
   * Models that can respond with events and report usage only there. One `*` in a pattern matches
   * any text. The gateway always requests events from these models and never from others. If unset,
   * support is unknown and the client's own choice is forwarded.
   */
  events?: readonly string[];
  /**
   * Top-level fields that the backend rejects with an error. The gateway drops them and warns the
   * client.
   */
  dropFields?: readonly string[];
}

/**
 * Request fields that may be sent under `Service-ZDR`, reviewed against OpenAI's documentation. A
 * custom voice is stored by the provider and is named by an object, so it is not allowed.
 */
export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["text to speak", valueFields("input")],
  ["voice and style", valueFields("voice instructions speed")],
  ["format of the audio", valueFields("response_format stream_format stream")],
];

/** Analyzes a request in both modes: its possible cost and its references. */
export function analyze(body: Body): RequestFacts {
  const { input, ...fields } = body;
  return {
    ...analyzeFields(fields),
    ...estimateSpeechUsage(asText(input) ?? "", textIn(fields)),
  };
}

/** Fields whose text is not spoken. */
const NON_SPOKEN_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "voice",
  "response_format",
  "speed",
  "stream",
  STREAM_FORMAT,
]);

/** Returns the text outside `input` that a backend may speak or bill. */
const textIn = (fields: Body): string =>
  Object.entries(fields)
    .filter(([field]) => !NON_SPOKEN_FIELDS.has(field))
    .map(([, value]) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join("");

// Usage of speech: input tokens and audio output tokens.

/** Returns the usage, or an empty object if nothing was reported. */
export function usageOf(report: Opt<JsonObject>): Usage {
  const input = asCount(report?.["input_tokens"]);
  const sound = asCount(report?.["output_tokens"]);
  return {
    ...(input !== undefined && { input }),
    ...(sound !== undefined && { audio_out: sound }),
  };
}

export function usageTo({ input = 0, audio_out = 0 }: Usage): JsonObject {
  return { input_tokens: input, output_tokens: audio_out, total_tokens: input + audio_out };
}
