// Reads messages of the Live API. JSON of protocol buffers has two spellings of each field name.
import { fail } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { SocketMessage } from "../../plugin/socket.ts";
import { asCount, asObject, asText, parseObject } from "../json-values.ts";

export const readMessage = (message: SocketMessage): JsonObject =>
  parseObject(typeof message === "string" ? message : message.toString()) ??
  fail("invalid", "The message is not a JSON object.", { code: "invalid_message" });

/** Returns a member by its name in lower camel case, or by the same name in snake case. */
export function member(of: JsonObject | undefined, name: string): Json | undefined {
  if (!of) return undefined;
  return of[name] ?? of[name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)];
}

export const objectMember = (of: JsonObject | undefined, name: string): JsonObject | undefined =>
  asObject(member(of, name));

/** Audio, an image, or another file inside a message. */
export interface Blob {
  readonly mime: string;
  /** Length of the data, in bytes. */
  readonly bytes: number;
}

export function readBlob(blob: JsonObject | undefined): Blob | undefined {
  const data = asText(blob?.["data"]);
  if (data === undefined) return undefined;
  return {
    mime: asText(member(blob, "mimeType")) ?? "",
    bytes: Math.floor((data.length * 3) / 4),
  };
}

/** Sample rate that is assumed if the media type names none. */
const DEFAULT_RATE = 16_000;
const MAX_RATE = 192_000;

/** Returns the seconds of 16-bit mono PCM, such as `audio/pcm;rate=24000`. */
export function audioSeconds({ mime, bytes }: Blob, defaultRate = DEFAULT_RATE): number {
  const named = asCount(Number(/;\s*rate=(\d{1,6})/.exec(mime)?.[1]));
  const rate = named !== undefined && named >= 8_000 && named <= MAX_RATE ? named : defaultRate;
  return bytes / (rate * 2);
}
