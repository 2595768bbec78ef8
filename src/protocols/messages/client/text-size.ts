// Measures how much text a response contains. Usage is estimated from it if the response is
// truncated.
import type { Json } from "../../../model/values.ts";
import { isObject } from "../../json-values.ts";

const DELTA = Buffer.from('"delta":{');
const KIND = Buffer.from('_delta","');
const VALUE = Buffer.from('":"');
const QUOTE = 34;

/**
 * Last letters of the names `text_delta`, `thinking_delta`, and `input_json_delta`. Signatures and
 * citations are not generated token by token, so they are not counted.
 */
const TEXT_DELTA_LAST_LETTERS = new Set([..."tgn"].map((letter) => letter.charCodeAt(0)));

/**
 * Returns the number of bytes of text in one delta event, found by the usual position of its
 * strings. Returns the size of the whole event if they are elsewhere.
 */
export function textBytesIn(b: Buffer, from: number, to: number): number {
  // Limits the search to this event, so that a missing member is not searched for in later events.
  const event = b.subarray(from, to);
  const delta = event.indexOf(DELTA);
  const kind = delta < 0 ? -1 : event.indexOf(KIND, delta);
  if (kind < 0) return event.length;
  if (!TEXT_DELTA_LAST_LETTERS.has(event[kind - 1]!)) return 0;
  const value = event.indexOf(VALUE, kind + KIND.length);
  const end = event.lastIndexOf(QUOTE);
  return value < 0 ? event.length : Math.max(0, end - value - VALUE.length);
}

const TEXTS = ["text", "thinking"];

/** Returns the number of bytes of text in the content of a whole response. */
export function textBytesOf(content: Json | undefined): number {
  let bytes = 0;
  for (const block of Array.isArray(content) ? (content as readonly Json[]) : []) {
    if (!isObject(block)) continue;
    for (const name of TEXTS)
      if (typeof block[name] === "string") bytes += Buffer.byteLength(block[name]);
    if (block["input"] !== undefined) bytes += Buffer.byteLength(JSON.stringify(block["input"]));
  }
  return bytes;
}
