// Measures how much text a response contains. Usage is estimated from it if the response is
// truncated.
import type { Json } from "../../../model/values.ts";
import { endOfString } from "../../sse/index.ts";
import { asList, asObject } from "../../json-values.ts";

const DELTA = Buffer.from('"delta":"');
const NOT_TEXT = /audio|image|signature/;

export const isText = (type: string): boolean => !NOT_TEXT.test(type);

/**
 * Returns the number of bytes in an event's `delta` string, or the size of the whole event if there
 * is none.
 */
export function textBytesIn(b: Buffer, from: number, to: number): number {
  // Limits the search to this event, so that a missing member is not searched for in later events.
  const event = b.subarray(from, to);
  const at = event.indexOf(DELTA);
  if (at < 0) return event.length;
  const quote = at + DELTA.length - 1;
  return endOfString(event, quote) - quote - 1;
}

const TEXT_FIELDS = ["text", "refusal", "arguments", "input", "code"];

/** Returns the number of bytes of text in the output of a whole response. */
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
