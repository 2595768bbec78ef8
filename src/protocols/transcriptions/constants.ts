// The words of this wire: its name, the fields that it knows, and the forms of its answers.
import type { Body } from "../../model/values.ts";
import { asText } from "../json-values.ts";

export const ID = "transcriptions";

export const RESPONSE_FORMAT = "response_format";
export const TIMESTAMP_GRANULARITIES = "timestamp_granularities";

/** In the common vocabulary, under another name or the same. */
export const COMMON_FIELDS: readonly string[] = [
  "model",
  "file",
  "language",
  "prompt",
  "temperature",
  RESPONSE_FORMAT,
  TIMESTAMP_GRANULARITIES,
  "stream",
];

/** Documented here and nowhere else: they go back to this wire only. */
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

/** The form that a client wants. */
export const formatIn = (body: Body): string => asText(body[RESPONSE_FORMAT]) ?? "json";

const PLAIN: ReadonlySet<string> = new Set(["text", "srt", "vtt"]);
export const isTextFormat = (format: string): boolean => PLAIN.has(format);

export const TEXT = "text/plain; charset=utf-8";
