// Encodes requests and gateway events as OTLP log records.
import type { GatewayEvent, RequestRecord, RejectedRequest, Usage } from "tollgate/plugin";
import { formatUsd } from "../usd.ts";
import { Attributes, Time } from "./attributes.ts";
import type { ItemBatch } from "./message-envelope.ts";
import type { ProtobufMessage } from "./message-shapes.ts";
import {
  addUniqueAttributes,
  inputTokenCount,
  isServerError,
  outputTokenCount,
  requestAttributes,
  type SpanOptions,
} from "./spans.ts";

const SEVERITY = { INFO: 9, WARN: 13, ERROR: 17 } as const;

/**
 * Adds the log record of a request. Every request has a log record, even if its spans are not
 * sampled.
 */
export function addRequestLog(to: ItemBatch, record: RequestRecord, of: SpanOptions): void {
  const { trace, at, ms, overheadMs, calls, status } = record;
  const attributes = new Attributes()
    .addDouble("tollgate.overhead_seconds", overheadMs / 1_000)
    .addDouble("tollgate.seconds", ms / 1_000);
  addUniqueAttributes(attributes, record, of);
  attributes
    .add("tollgate.usage.input_tokens", sumUsage(record, inputTokenCount))
    .add("tollgate.usage.output_tokens", sumUsage(record, outputTokenCount))
    .add("tollgate.cost.usd", totalCost(record));
  const { traceId, spanId } = trace;
  to.add(
    { ...times(at), attributes, traceId, spanId },
    {
      cache: of.shared.get(record),
      itemType: "log",
      create: () => ({
        ...message(
          isServerError(record) ? "ERROR" : status >= 400 ? "WARN" : "INFO",
          `${record.method} ${record.route} ${status}`,
          "tollgate.request",
        ),
        attributes: requestAttributes(record, of)
          .add("tollgate.served_model", record.served)
          .add("tollgate.credential", calls.at(-1)?.credential)
          .add("tollgate.mode", record.mode ?? undefined)
          .add("tollgate.stream", record.stream)
          .add("tollgate.finish_reason", record.finish),
      }),
    },
  );
}

function sumUsage(
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

/** Returns the total cost, or undefined if a call has no known price. */
function totalCost({ calls }: RequestRecord): string | undefined {
  let sum = 0n;
  for (const { costNano } of calls) {
    if (costNano === null) return undefined;
    sum += costNano;
  }
  return formatUsd(sum);
}

/**
 * Returns the log record of a request that was rejected before routing. Such a request is not part
 * of any trace.
 */
export const rejectionLog = ({
  at,
  id,
  status,
  code,
  method,
  listener,
}: RejectedRequest): ProtobufMessage => ({
  ...times(at),
  ...message("WARN", `${code} ${status}`, "tollgate.rejected"),
  attributes: new Attributes()
    .add("http.request.method", method)
    .add("http.response.status_code", status)
    .add("tollgate.request.id", id)
    .add("tollgate.error_code", code)
    .add("tollgate.listener", listener),
});

/**
 * Returns the log record of a gateway event. Scalar properties become attributes, so new event
 * types need no change here.
 */
export function eventLog({ type, at, ...more }: GatewayEvent): ProtobufMessage {
  const bad = "ok" in more ? !more.ok : type === "worker_exited";
  const severity = bad
    ? "ERROR"
    : type === "cooldown_started" || type === "records_dropped"
      ? "WARN"
      : "INFO";
  const attributes = new Attributes();
  for (const [name, value] of Object.entries(more)) {
    if (typeof value === "bigint") attributes.add(`tollgate.${name}`, String(value));
    else if (["string", "number", "boolean"].includes(typeof value))
      attributes.add(`tollgate.${name}`, value as string | number | boolean);
  }
  return { ...times(at), ...message(severity, type, `tollgate.${type}`), attributes };
}

function times(at: number): ProtobufMessage {
  const time = new Time(at);
  return { timeUnixNano: time, observedTimeUnixNano: time };
}

const message = (
  severityText: keyof typeof SEVERITY,
  stringValue: string,
  eventName: string,
): ProtobufMessage => ({
  severityNumber: SEVERITY[severityText],
  severityText,
  body: { stringValue },
  eventName,
});
