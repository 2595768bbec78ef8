// The protocol's name, the fields that it knows, and its response formats.
import type { Body } from "../../model/values.ts";
import { asText } from "../json-values.ts";

export const ID = "transcriptions";

export const RESPONSE_FORMAT = "response_format";
export const TIMESTAMP_GRANULARITIES = "timestamp_granularities";

/** Fields that the common form can express, under the same or another name. */
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
