// Fields, dialects, and usage that both halves of the transcription protocol share.
import { estimateAudioUsage } from "../../model/operations/transcript-operation.ts";
import type { Usage } from "../../model/usage.ts";
import { type Body, isFilePart, type JsonObject, type Opt } from "../../model/values.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { analyzeFields } from "../cost-analysis.ts";
import { asText, isTruthyFlag, asCount, asNumber, asObject } from "../json-values.ts";
import { valueFields } from "../references/index.ts";

/** The protocol's name, the fields that it knows, and its response formats. */
export const ID = "transcriptions";

export const RESPONSE_FORMAT = "response_format";

export const TIMESTAMP_GRANULARITIES = "timestamp_granularities";

/** Fields that the common form can express, under the same or another name. */
const COMMON_FIELDS: readonly string[] = [
  "model",
  "file",
  "language",
  "prompt",
  "temperature",
  RESPONSE_FORMAT,
  TIMESTAMP_GRANULARITIES,
  "stream",
];

/** Fields that only this protocol documents. They are sent only to providers of this protocol. */
export const PROTOCOL_FIELDS: readonly string[] = [
  "include",
  "chunking_strategy",
  "known_speaker_names",
  "known_speaker_references",
  "languages",
  "keywords",
];

export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) || PROTOCOL_FIELDS.includes(field);

/** Returns the response format that the client requests. Default: `json`. */
export const formatIn = (body: Body): string => asText(body[RESPONSE_FORMAT]) ?? "json";

const PLAIN: ReadonlySet<string> = new Set(["text", "srt", "vtt"]);

export const isTextFormat = (format: string): boolean => PLAIN.has(format);

export const TEXT = "text/plain; charset=utf-8";

/**
 * Differences between backends that use this protocol. A dialect is plain data, so a provider can
 * be defined without code. Default for every field: the behavior of OpenAI.
 */
export interface TranscriptDialect {
  /**
   * Response formats that each model supports. The first entry that matches the model applies, and
   * one `*` in a pattern of `of` matches any text. A client receives its requested format if a
   * supported one contains the necessary data.
   *
   * `false`: all models respond with JSON that has segments, and there is no format field. If
   * unset, support is unknown and the client's own choice is forwarded.
   */
  formats?: readonly { of: readonly string[]; formats: readonly string[] }[] | false;
  /** Whether the backend supports translation. Default: true. */
  translates?: boolean;
  /**
   * Top-level fields that the backend rejects with an error. The gateway drops them and warns the
   * client.
   */
  dropFields?: readonly string[];
}

/**
 * Request fields that may be sent under `Service-ZDR`, reviewed against the documentation of OpenAI
 * and of compatible backends.
 */
export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["audio to transcribe", valueFields("file")],
  ["hints about its content", valueFields("language languages prompt keywords")],
  ["speakers whose voices may occur", valueFields("known_speaker_names known_speaker_references")],
  [
    "transcription settings",
    {
      ...valueFields("temperature"),
      chunking_strategy: valueFields("type prefix_padding_ms silence_duration_ms threshold"),
    },
  ],
  [
    "format of the transcript",
    valueFields("response_format timestamp_granularities include stream"),
  ],
];

/** Analyzes a request in both modes: its possible cost and its references. */
export function analyze(body: Body): RequestFacts {
  const { file, ...fields } = body;
  const facts = analyzeFields(fields);
  return {
    ...facts,
    features: [...(isTruthyFlag(body["stream"]) ? (["stream"] as const) : []), ...facts.features],
    ...(isFilePart(file) && estimateAudioUsage(file.data, textIn(fields))),
  };
}

/** Returns the text that a model may read in addition to the audio. */
const textIn = (fields: object): string =>
  Object.values(fields)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" ");

// Usage of transcriptions, in tokens or seconds. Backends report each in several ways.

/**
 * Returns the usage, or an empty object if nothing was reported. If seconds are reported, they are
 * billed and the tokens in the same report are ignored.
 */
export function usageOf(report: Opt<JsonObject>): Usage {
  const seconds = asNumber(report?.["seconds"]) ?? asNumber(report?.["prompt_audio_seconds"]);
  if (seconds !== undefined) return { seconds };
  const read = asCount(report?.["input_tokens"]);
  const output = asCount(report?.["output_tokens"]);
  if (read === undefined) return output === undefined ? {} : { output };
  const details = asObject(report?.["input_token_details"]);
  const words = asCount(details?.["text_tokens"]) ?? 0;
  return {
    input: words,
    // All input tokens that are not reported as text are audio.
    audio_in: Math.max(0, read - words),
    ...(output !== undefined && { output }),
  };
}

export function usageTo({ seconds, input, audio_in, output }: Usage): JsonObject | undefined {
  if (output === undefined)
    return seconds === undefined ? undefined : { type: "duration", seconds };
  const [words, audioTokens] = [input ?? 0, audio_in ?? 0];
  return {
    type: "tokens",
    input_tokens: words + audioTokens,
    input_token_details: { text_tokens: words, audio_tokens: audioTokens },
    output_tokens: output,
    total_tokens: words + audioTokens + output,
  };
}
