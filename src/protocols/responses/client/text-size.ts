// How much text an answer has: what it is estimated from when it is cut.
import type { Json } from "../../../model/values.ts";
import { endOfString } from "../../sse/index.ts";
import { asList, asObject } from "../../json-values.ts";

const DELTA = Buffer.from('"delta":"');
const NOT_TEXT = /audio|image|signature/;

export const isText = (type: string): boolean => !NOT_TEXT.test(type);

/** Bytes of the delta's own string; all of the event where it is not found. */
export function textBytesIn(b: Buffer, from: number, to: number): number {
  // Within the event only: what it lacks is not looked for in those behind it.
  const event = b.subarray(from, to);
  const at = event.indexOf(DELTA);
  if (at < 0) return event.length;
  const quote = at + DELTA.length - 1;
  return endOfString(event, quote) - quote - 1;
}

const TEXT_FIELDS = ["text", "refusal", "arguments", "input", "code"];

/** The same of a whole answer's output. */
export function textBytesOf(output: Json | undefined): number {
  let bytes = 0;
  for (const raw of asList(output)) {
    const item = asObject(raw);
    for (const part of [raw, ...asList(item?.["content"]), ...asList(item?.["summary"])])
      for (const name of TEXT_FIELDS) {
        const value = asObject(part)?.[name];
        if (typeof value === "string") bytes += Buffer.byteLength(value);
      }
  }
  return bytes;
}
