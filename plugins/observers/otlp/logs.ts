// A request as a line of a log, and what the gateway tells of itself.
import type { Notice, RequestRecord, TurnedAway, Usage } from "tollgate/plugin";
import { ListedAttributes, nanos, usd } from "./attributes.ts";
import type { Message } from "./protobuf.ts";
import {
  hasFailed,
  readTokens,
  requestAttributes,
  writtenTokens,
  type SpanOptions,
} from "./spans.ts";

const SEVERITY = { INFO: 9, WARN: 13, ERROR: 17 } as const;

/** Every request has one, also where its spans are not kept. */
export function requestLog(record: RequestRecord, of: SpanOptions): Message {
  const { trace, at, calls, status } = record;
  const last = calls.at(-1);
  const attributes = requestAttributes(of.attributes("log"), record, of)
    .add("tollgate.served", record.served)
    .add("tollgate.credential", last?.credential)
    .add("tollgate.lane", record.lane ?? undefined)
    .add("tollgate.stream", record.stream)
    .add("tollgate.finish", record.finish)
    .double("tollgate.seconds", record.ms / 1_000)
    .add("tollgate.usage.input_tokens", total(record, readTokens))
    .add("tollgate.usage.output_tokens", total(record, writtenTokens))
    .add("tollgate.cost.usd", costOf(record));
  const severity = hasFailed(record) ? "ERROR" : status >= 400 ? "WARN" : "INFO";
  return {
    ...line(at, severity, `${record.method} ${record.route} ${status}`, "tollgate.request"),
    attributes: attributes.written,
    traceId: trace.traceId,
    spanId: trace.spanId,
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
export function refusalLog({ at, id, status, code, method, listener }: TurnedAway): Message {
  const attributes = new ListedAttributes()
    .add("http.request.method", method)
    .add("http.response.status_code", status)
    .add("tollgate.request.id", id)
    .add("tollgate.fault.code", code)
    .add("tollgate.listener", listener);
  return {
    ...line(at, "WARN", `${code} ${status}`, "tollgate.turned_away"),
    attributes: attributes.written,
  };
}

/** New notices are told as they are: what is plain in them is an attribute. */
export function noticeLog({ type, at, ...more }: Notice): Message {
  const attributes = new ListedAttributes();
  for (const [name, value] of Object.entries(more)) {
    if (typeof value === "bigint") attributes.add(`tollgate.${name}`, String(value));
    else if (["string", "number", "boolean"].includes(typeof value))
      attributes.add(`tollgate.${name}`, value as string | number | boolean);
  }
  const bad = "ok" in more ? !more.ok : type === "worker_gone";
  const severity = bad ? "ERROR" : type === "rests" || type === "dropped" ? "WARN" : "INFO";
  return {
    ...line(at, severity, type, `tollgate.${type}`),
    attributes: attributes.written,
  };
}

const line = (
  at: number,
  severity: keyof typeof SEVERITY,
  text: string,
  eventName: string,
): Message => ({
  timeUnixNano: nanos(at),
  observedTimeUnixNano: nanos(at),
  severityNumber: SEVERITY[severity],
  severityText: severity,
  body: { stringValue: text },
  eventName,
});
