// Reads an event's type, number, and text size from its bytes, for passthrough mode, which does not
// parse events.
import type { JsonObject, Json } from "../../../model/values.ts";
import { parseObject, asText, asList, asObject } from "../../json-values.ts";
import { parseEventText, encodeKey, findKey, findValue, endOfString } from "../../sse/index.ts";
import { parseEventObject } from "../../sse/event-splitter.ts";

const TYPE = [encodeKey("type")];

export const DONE_TYPE = "[DONE]";

/**
 * Returns an event's type, or "" for a comment. The type is in the data, usually as the first
 * member. The `event:` line is only a copy of it.
 */
export function typeOf(event: Buffer, json: number): string {
  if (json < 0) {
    const read = parseEventText(event);
    if (!read) return "";
    return read.data === DONE_TYPE
      ? DONE_TYPE
      : (asText(parseObject(read.data)?.["type"]) ?? read.event);
  }
  if (event[json] === 91) return DONE_TYPE;
  // If the data cannot be read, clients only have the `event:` line.
  if (ERROR_LINES.some((line) => event.includes(line)) && parseEventText(event)?.event === "error")
    return "error";
  const type = findValue(event, TYPE, json);
  if (type) return event.toString("latin1", type.from + 1, type.to - 1);
  return parseEventText(event)?.event || (dataIn(event)["error"] ? "error" : "unknown");
}

/** The space after the colon is optional. */
const ERROR_LINES = ["event: error", "event:error"].map((line) => Buffer.from(line));

export const dataIn = (event: Buffer): JsonObject =>
  parseEventObject(parseEventText(event)?.data ?? "");

/**
 * Returns the sequence number. It is searched for in the bytes, because a failure is also reported
 * after an event that cannot be parsed.
 */
export function sequenceIn(event: Buffer): number {
  const at = findValue(event, SEQUENCE, event.indexOf(BRACE));
  const sequence = at ? Number(event.toString("latin1", at.from, at.to)) : NaN;
  return Number.isSafeInteger(sequence) ? sequence : 0;
}

const SEQUENCE = [encodeKey("sequence_number")];

const BRACE = 123;

/**
 * Measures the amount of text in a response. Usage is estimated from it if the response is
 * truncated.
 */
const DELTA = encodeKey("delta");
const QUOTE = 34;

const NOT_TEXT = /audio|image|signature/;

export const isText = (type: string): boolean => !NOT_TEXT.test(type);

/**
 * Returns the number of bytes in an event's `delta` string, or the size of the whole event if there
 * is none.
 */
export function textBytesIn(event: Buffer, json: number): number {
  const quote = findKey(event, DELTA, Math.max(0, json));
  return event[quote] === QUOTE ? endOfString(event, quote) - quote - 1 : event.length;
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
