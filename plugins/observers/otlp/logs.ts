// A request as a line of a log, and what the gateway tells of itself.
import type { Notice, RequestRecord, TurnedAway, Usage } from "tollgate/plugin";
import { Alike } from "../alike.ts";
import type { Spelling } from "../genai.ts";
import { usd } from "../usd.ts";
import { type Items, Kept, type Likeness } from "./items.ts";
import {
  aboutRequest,
  callLikeness,
  hasFailed,
  ofItsOwn,
  readTokens,
  requestLikeness,
  spanNames,
  writtenTokens,
  type SpanOptions,
} from "./spans.ts";

const SEVERITY = { INFO: 9, WARN: 13, ERROR: 17 } as const;

/** Every request has one, also where its spans are not kept. */
export function sayRequest(to: Items, record: RequestRecord, of: SpanOptions): void {
  to.begin();
  to.alike(of.alike.of(record), "line", record, of.line);
  ofItsOwn(to, record, of);
  to.attributes
    .add("tollgate.usage.input_tokens", total(record, readTokens))
    .add("tollgate.usage.output_tokens", total(record, writtenTokens))
    .add("tollgate.cost.usd", costOf(record));
  to.end();
}

const lineLikeness = (keys: boolean): Likeness<RequestRecord> => ({
  each(to, { trace, at, ms, ownMs }) {
    when(to, at);
    to.id("traceId", trace.traceId);
    to.id("spanId", trace.spanId);
    to.attributes
      .double("tollgate.own_seconds", ownMs / 1_000)
      .double("tollgate.seconds", ms / 1_000);
  },
  all(to, record) {
    const { calls, status } = record;
    const severity = hasFailed(record) ? "ERROR" : status >= 400 ? "WARN" : "INFO";
    what(to, severity, `${record.method} ${record.route} ${status}`, "tollgate.request");
    aboutRequest(to, record, keys);
    to.attributes
      .add("tollgate.served", record.served)
      .add("tollgate.credential", calls.at(-1)?.credential)
      .add("tollgate.lane", record.lane ?? undefined)
      .add("tollgate.stream", record.stream)
      .add("tollgate.finish", record.finish);
  },
});

/** How requests are told, as spans and as lines. `keys`: with the ids of keys and the names of accounts. */
export function telling(
  spellings: readonly Spelling[],
  { keys, labels }: { readonly keys: boolean; readonly labels: boolean },
): SpanOptions {
  const names = spanNames(spellings);
  return {
    names,
    alike: new Alike(() => new Kept()),
    request: requestLikeness(keys),
    call: callLikeness(names),
    line: lineLikeness(keys),
    labels,
  };
}

function total(
  { calls }: RequestRecord,
  of: (usage: Usage) => number | undefined,
): number | undefined {
  let sum: number | undefined;
  for (const { usage } of calls) {
    const count = of(usage);
    if (count !== undefined) sum = (sum ?? 0) + count;
  }
  return sum;
}

/** Undefined: not all of it has a known price. */
function costOf({ calls }: RequestRecord): string | undefined {
  let sum = 0n;
  for (const { costNano } of calls) {
    if (costNano === null) return undefined;
    sum += costNano;
  }
  return usd(sum);
}

/** What the door has refused is no request, and in no trace. */
export function sayRefusal(
  to: Items,
  { at, id, status, code, method, listener }: TurnedAway,
): void {
  to.begin();
  when(to, at);
  what(to, "WARN", `${code} ${status}`, "tollgate.turned_away");
  to.attributes
    .add("http.request.method", method)
    .add("http.response.status_code", status)
    .add("tollgate.request.id", id)
    .add("tollgate.fault.code", code)
    .add("tollgate.listener", listener);
  to.end();
}

/** New notices are told as they are: what is plain in them is an attribute. */
export function sayNotice(to: Items, { type, at, ...more }: Notice): void {
  const bad = "ok" in more ? !more.ok : type === "worker_gone";
  const severity = bad ? "ERROR" : type === "rests" || type === "dropped" ? "WARN" : "INFO";
  to.begin();
  when(to, at);
  what(to, severity, type, `tollgate.${type}`);
  for (const [name, value] of Object.entries(more)) {
    if (typeof value === "bigint") to.attributes.add(`tollgate.${name}`, String(value));
    else if (["string", "number", "boolean"].includes(typeof value))
      to.attributes.add(`tollgate.${name}`, value as string | number | boolean);
  }
  to.end();
}

function when(to: Items, at: number): void {
  to.moment("timeUnixNano", at);
  to.moment("observedTimeUnixNano", at);
}

function what(to: Items, severity: keyof typeof SEVERITY, text: string, eventName: string): void {
  to.number("severityNumber", SEVERITY[severity]);
  to.text("severityText", severity);
  to.within("body", () => to.text("stringValue", text));
  to.text("eventName", eventName);
}
