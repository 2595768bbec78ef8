// The words of this wire: its name, the fields that it knows, and the forms of its answers.
import type { Body } from "../../model/values.ts";
import { text } from "../json.ts";

export const ID = "transcriptions";

export const FORMAT = "response_format";
export const TIMES = "timestamp_granularities";

/** In the common vocabulary, under another name or the same. */
export const COMMON: readonly string[] = [
  "model",
  "file",
  "language",
  "prompt",
  "temperature",
  FORMAT,
  TIMES,
  "stream",
];

/** Documented here and nowhere else: they go back to this wire only. */
export const OWN: readonly string[] = [
  "include",
  "chunking_strategy",
  "known_speaker_names",
  "known_speaker_references",
  "languages",
  "keywords",
];

export const knows = (field: string): boolean => COMMON.includes(field) || OWN.includes(field);

/** The form that a client wants. */
export const formatIn = (body: Body): string => text(body[FORMAT]) ?? "json";

const PLAIN: ReadonlySet<string> = new Set(["text", "srt", "vtt"]);
export const isPlain = (format: string): boolean => PLAIN.has(format);

export const TEXT = "text/plain; charset=utf-8";
