// Formats in which clients and providers exchange audio.
import type { JsonObject } from "../../model/values.ts";
import { asCount, asObject, asText } from "../json-values.ts";

/** 16-bit mono PCM at 24 kHz: the default, and the only PCM format of OpenAI. */
export const DEFAULT_BYTES_A_SECOND = 48_000;
const G711_BYTES_A_SECOND = 8_000;
const MIN_PCM_RATE = 8_000;
const MAX_PCM_RATE = 192_000;

/**
 * Returns the bytes per second of a format: an object such as `{ type: "audio/pcm", rate: 24000 }`,
 * or a name such as `pcm16`. Undefined: not a known format.
 */
export function bytesPerSecond(format: unknown): number | undefined {
  const object = asObject(format);
  const name = asText(object ? object["type"] : format);
  switch (name) {
    case "audio/pcmu":
    case "audio/pcma":
    case "g711_ulaw":
    case "g711_alaw":
      return G711_BYTES_A_SECOND;
    case "pcm16":
    case "audio/pcm":
      return pcmBytesPerSecond(object);
    default:
      return undefined;
  }
}

function pcmBytesPerSecond(format: JsonObject | undefined): number {
  const rate = asCount(format?.["rate"]);
  if (rate === undefined || rate < MIN_PCM_RATE || rate > MAX_PCM_RATE)
    return DEFAULT_BYTES_A_SECOND;
  return rate * 2;
}

/** Returns the number of bytes that a base64 text encodes. */
export function decodedLength(base64: string): number {
  const { length } = base64;
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return Math.max(0, Math.floor((length * 3) / 4) - padding);
}
