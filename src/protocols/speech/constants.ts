// The words of this wire: its name, the fields that it knows, and what its sounds are.
import type { Body } from "../../model/values.ts";
import { ownEntry } from "../own-entry.ts";

export const ID = "speech";

/** Whether sound comes as it is or in events is between a client and this wire. */
export const STREAM_FORMAT = "stream_format";

/** In the common vocabulary, under another name or the same. */
export const COMMON_FIELDS: readonly string[] = [
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

export const EVENT_STREAM = "text/event-stream; charset=utf-8";

export const wantsEvents = (body: Body): boolean => body[STREAM_FORMAT] === "sse";

/** What the client is told of what it gets, where no upstream says it. */
export const mimeOf = (body: Body): string =>
  wantsEvents(body)
    ? EVENT_STREAM
    : (ownEntry(MIMES, body["response_format"] ?? "mp3") ?? "application/octet-stream");
