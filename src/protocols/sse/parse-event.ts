import { isUtf8 } from "node:buffer";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import { parseObject } from "../json-values.ts";

/**
 * Parses the bytes of one event, as `createEventSplitter` returns them. An event without data is
 * ignored, as the SSE standard requires. The `id` and `retry` fields only concern browsers and are
 * ignored.
 */
export function parseEvent(
  b: Buffer,
  from: number,
  to: number,
  lineCap: number,
  on: (event: string, data: string) => void,
): void {
  let text = b.toString("utf8", from, to);
  // The replacement character appears if bytes were invalid, or if the provider sent that
  // character.
  if (text.includes("\ufffd") && !isUtf8(b.subarray(from, to)))
    fail("upstream", "The provider's stream is not valid UTF-8.", { code: "invalid_utf8" });
  if (text.includes("\r")) text = text.replace(/\r\n?/g, "\n");
  let event = "";
  let data: string | undefined;
  for (let i = 0; i < text.length;) {
    let end = text.indexOf("\n", i);
    if (end < 0) end = text.length;
    if (end - i > lineCap) failBoundExceeded("line", lineCap);
    if (text.startsWith("data", i)) {
      const value = fieldValue(text, i + 4, end);
      if (value !== undefined) data = data === undefined ? value : `${data}\n${value}`;
    } else if (text.startsWith("event", i)) {
      event = fieldValue(text, i + 5, end) ?? event;
    }
    i = end + 1;
  }
  if (data !== undefined && data !== "") on(event, data);
}

/**
 * Returns the value after a field's name: a colon, an optional space, and the value. A name alone
 * has an empty value. Returns undefined if the text continues the name, because that is another
 * field.
 */
function fieldValue(text: string, i: number, end: number): string | undefined {
  if (i === end) return "";
  if (text[i] !== ":") return undefined;
  return text.slice(text[i + 1] === " " ? i + 2 : i + 1, end);
}

/**
 * Parses the bytes of one event into text. Passthrough mode uses it for an event that it cannot
 * read in place.
 */
export function parseEventText(event: Buffer): { event: string; data: string } | undefined {
  let found: { event: string; data: string } | undefined;
  parseEvent(event, 0, event.length, Infinity, (name, data) => {
    found = { event: name, data };
  });
  return found;
}

/**
 * Parses the data of a provider's stream event, which is a JSON object in every protocol. Any other
 * value aborts the response.
 */
export const parseEventObject = (data: string): JsonObject =>
  parseObject(data) ??
  fail("upstream", "The provider's stream contains an event that is not a JSON object.", {
    code: "bad_stream",
  });
