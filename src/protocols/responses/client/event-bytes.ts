// What an event's bytes tell a relay that does not parse them: its type, its number, what its kind begins with.
import { parseEventObject } from "../../parse-event-object.ts";
import type { JsonObject } from "../../../model/values.ts";
import { parseEventText, encodeKey, findValue } from "../../sse/index.ts";
import { parseObject, asText } from "../../json-values.ts";

const TYPE = [encodeKey("type")];

export const DONE_TYPE = "[DONE]";

/** Up to the end of its type, where that comes first of all; undefined where it does not. */
export function eventPrefix(event: Buffer, json: number): Buffer | undefined {
  const type = json < 0 ? undefined : findValue(event, TYPE, json);
  if (!type || event.subarray(json, type.from).includes(COMMA)) return undefined;
  return Buffer.from(event.subarray(0, type.to));
}
const COMMA = 44;

/** "" for a comment. The name stands in the data, first as a rule; the event's own line is only a copy of it. */
export function typeOf(event: Buffer, json: number): string {
  if (json < 0) {
    const read = parseEventText(event);
    if (!read) return "";
    return read.data === DONE_TYPE
      ? DONE_TYPE
      : (asText(parseObject(read.data)?.["type"]) ?? read.event);
  }
  if (event[json] === 91) return DONE_TYPE;
  // Where its data cannot be read, its line is all that a client has.
  if (ERROR_LINES.some((line) => event.includes(line)) && parseEventText(event)?.event === "error")
    return "error";
  const type = findValue(event, TYPE, json);
  if (type) return event.toString("latin1", type.from + 1, type.to - 1);
  return parseEventText(event)?.event || (dataIn(event)["error"] ? "error" : "unknown");
}

/** A line may have a space behind its colon. */
const ERROR_LINES = ["event: error", "event:error"].map((line) => Buffer.from(line));

/** What begins alike may still have other lines behind its data. */
export function endsWithData(b: Buffer, till: number): boolean {
  let last = till - 1;
  while (b[last] === 10 || b[last] === 13) last--;
  return b[last] === CLOSED;
}
const CLOSED = 125;

export const dataIn = (event: Buffer): JsonObject =>
  parseEventObject(parseEventText(event)?.data ?? "");

/** Looked for in the bytes: a failure is told of an event that cannot be read, too. */
export function sequenceIn(event: Buffer): number {
  const at = findValue(event, SEQUENCE, event.indexOf(BRACE));
  const sequence = at ? Number(event.toString("latin1", at.from, at.to)) : NaN;
  return Number.isSafeInteger(sequence) ? sequence : 0;
}
const SEQUENCE = [encodeKey("sequence_number")];
const BRACE = 123;
