// How much text an answer has: what it is estimated from when it is cut.
import type { Json } from "../../../model/values.ts";
import { isObject } from "../words.ts";

const DELTA = Buffer.from('"delta":{');
const KIND = Buffer.from('_delta","');
const VALUE = Buffer.from('":"');
const QUOTE = 34;

/** Last letters of text_delta, thinking_delta and input_json_delta: signatures and citations are not written by the token. */
const COUNTED = new Set([..."tgn"].map((letter) => letter.charCodeAt(0)));

/** Bytes of text in one delta event, told by where its strings stand; all of it where they stand otherwise. */
export function wordsIn(b: Buffer, from: number, to: number): number {
  const delta = b.indexOf(DELTA, from);
  const kind = delta < 0 || delta >= to ? -1 : b.indexOf(KIND, delta);
  if (kind < 0 || kind >= to) return to - from;
  if (!COUNTED.has(b[kind - 1]!)) return 0;
  const value = b.indexOf(VALUE, kind + KIND.length);
  const end = b.lastIndexOf(QUOTE, to - 1);
  return value < 0 || value > to ? to - from : Math.max(0, end - value - VALUE.length);
}

const TEXTS = ["text", "thinking"];

/** The same of a whole answer's content. */
export function wordsOf(content: Json | undefined): number {
  let bytes = 0;
  for (const block of Array.isArray(content) ? (content as readonly Json[]) : []) {
    if (!isObject(block)) continue;
    for (const name of TEXTS)
      if (typeof block[name] === "string") bytes += Buffer.byteLength(block[name]);
    if (block["input"] !== undefined) bytes += Buffer.byteLength(JSON.stringify(block["input"]));
  }
  return bytes;
}
