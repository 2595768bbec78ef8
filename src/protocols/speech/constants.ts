// The protocol's name, the fields that it knows, and the media types of its audio.
import type { Body } from "../../model/values.ts";
import { ownEntry } from "../own-entry.ts";

export const ID = "speech";

/** Field that selects raw audio or events. Only this protocol has it. */
export const STREAM_FORMAT = "stream_format";

/** Fields that the common form can express, under the same or another name. */
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

/** Returns the media type of the response, for use if the provider sends none. */
export const mimeOf = (body: Body): string =>
  wantsEvents(body)
    ? EVENT_STREAM
    : (ownEntry(MIMES, body["response_format"] ?? "mp3") ?? "application/octet-stream");
