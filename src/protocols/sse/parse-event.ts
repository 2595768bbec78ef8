import { isUtf8 } from "node:buffer";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";

/**
 * Reads one event's bytes, as `frames` gives them. An event without data says nothing, as the standard has it; `id` and
 * `retry` concern browsers.
 */
export function parseEvent(
  b: Buffer,
  from: number,
  to: number,
  lineCap: number,
  on: (event: string, data: string) => void,
): void {
  let text = b.toString("utf8", from, to);
  // The replacement character stands where bytes were wrong, or where upstream really wrote it.
  if (text.includes("\ufffd") && !isUtf8(b.subarray(from, to)))
    fail("upstream", "The upstream's stream is not valid UTF-8.", { code: "invalid_utf8" });
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

/** What follows a field's name: a colon and perhaps one space; nothing at all is an empty value; else it was another field. */
function fieldValue(text: string, i: number, end: number): string | undefined {
  if (i === end) return "";
  if (text[i] !== ":") return undefined;
  return text.slice(text[i + 1] === " " ? i + 2 : i + 1, end);
}

/** The text of one event's bytes, for a relay that meets one it cannot read in place. */
export function parseEventText(event: Buffer): { event: string; data: string } | undefined {
  let found: { event: string; data: string } | undefined;
  parseEvent(event, 0, event.length, Infinity, (name, data) => {
    found = { event: name, data };
  });
  return found;
}
