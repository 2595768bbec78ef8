// How much text an answer has: what it is estimated from when it is cut.
import type { Json } from "../../../model/values.ts";
import { isObject } from "../../json-values.ts";

const DELTA = Buffer.from('"delta":{');
const KIND = Buffer.from('_delta","');
const VALUE = Buffer.from('":"');
const QUOTE = 34;

/** Last letters of text_delta, thinking_delta and input_json_delta: signatures and citations are not written by the token. */
const TEXT_DELTA_LAST_LETTERS = new Set([..."tgn"].map((letter) => letter.charCodeAt(0)));

/** Bytes of text in one delta event, told by where its strings stand; all of it where they stand otherwise. */
export function textBytesIn(b: Buffer, from: number, to: number): number {
  // Within the event only: what it lacks is not looked for in those behind it.
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

/** The same of a whole answer's content. */
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
