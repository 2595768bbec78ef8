// What an event's bytes tell a relay that does not parse them: its type, its number, what its kind begins with.
import { eventObject } from "../../event-object.ts";
import type { JsonObject } from "../../../model/values.ts";
import { eventOf, needle, valueAt } from "../../sse/index.ts";
import { parsed, text } from "../../json.ts";

const TYPE = [needle("type")];

export const DONE_TYPE = "[DONE]";

/** Up to the end of its type, where that comes first of all; undefined where it does not. */
export function beginningOf(event: Buffer, json: number): Buffer | undefined {
  const type = json < 0 ? undefined : valueAt(event, TYPE, json);
  if (!type || event.subarray(json, type.from).includes(COMMA)) return undefined;
  return Buffer.from(event.subarray(0, type.to));
}
const COMMA = 44;

/** "" for a comment. The name stands in the data, first as a rule; the event's own line is only a copy of it. */
export function typeOf(event: Buffer, json: number): string {
  if (json < 0) {
    const read = eventOf(event);
    if (!read) return "";
    return read.data === DONE_TYPE ? DONE_TYPE : (text(parsed(read.data)?.["type"]) ?? read.event);
  }
  if (event[json] === 91) return DONE_TYPE;
  // Where its data cannot be read, its line is all that a client has.
  if (ERROR_LINES.some((line) => event.includes(line)) && eventOf(event)?.event === "error")
    return "error";
  const type = valueAt(event, TYPE, json);
  if (type) return event.toString("latin1", type.from + 1, type.to - 1);
  return eventOf(event)?.event || (dataIn(event)["error"] ? "error" : "unknown");
}

/** A line may have a space behind its colon. */
const ERROR_LINES = ["event: error", "event:error"].map((line) => Buffer.from(line));

/** What begins alike may still have other lines behind its data. */
export function endsInData(b: Buffer, till: number): boolean {
  let last = till - 1;
  while (b[last] === 10 || b[last] === 13) last--;
  return b[last] === CLOSED;
}
const CLOSED = 125;

export const dataIn = (event: Buffer): JsonObject => eventObject(eventOf(event)?.data ?? "");

/** Looked for in the bytes: a failure is told of an event that cannot be read, too. */
export function sequenceIn(event: Buffer): number {
  const at = valueAt(event, SEQUENCE, event.indexOf(BRACE));
  const said = at ? Number(event.toString("latin1", at.from, at.to)) : NaN;
  return Number.isSafeInteger(said) ? said : 0;
}
const SEQUENCE = [needle("sequence_number")];
const BRACE = 123;
