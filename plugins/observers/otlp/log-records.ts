// Encodes requests and gateway events as OTLP log records.
import type { GatewayEvent, RequestRecord, RejectedRequest, Usage } from "tollgate/plugin";
import { TemplateCache } from "../template-cache.ts";
import type { NamingVersion } from "../genai-names.ts";
import { formatUsd } from "../usd.ts";
import { type BatchItems, TemplateSet, type TemplateWriter } from "./batch-items.ts";
import {
  addRequestAttributes,
  createCallTemplate,
  isServerError,
  addUniqueAttributes,
  inputTokenCount,
  createRequestTemplate,
  createSpanNames,
  outputTokenCount,
  type SpanOptions,
} from "./spans.ts";

const SEVERITY = { INFO: 9, WARN: 13, ERROR: 17 } as const;

/** Writes the log record of a request. Every request has one, even if its spans are not sampled. */
export function writeRequestLog(to: BatchItems, record: RequestRecord, of: SpanOptions): void {
  to.begin();
  to.writeFromTemplate(of.templates.get(record), "logRecord", record, of.logRecord);
  addUniqueAttributes(to, record, of);
  to.attributes
    .add("tollgate.usage.input_tokens", sumUsage(record, inputTokenCount))
    .add("tollgate.usage.output_tokens", sumUsage(record, outputTokenCount))
    .add("tollgate.cost.usd", totalCost(record));
  to.end();
}

const createLogTemplate = (keys: boolean): TemplateWriter<RequestRecord> => ({
  writeVariable(to, { trace, at, ms, overheadMs }) {
    writeTimes(to, at);
    to.id("traceId", trace.traceId);
    to.id("spanId", trace.spanId);
    to.attributes
      .addDouble("tollgate.overhead_seconds", overheadMs / 1_000)
      .addDouble("tollgate.seconds", ms / 1_000);
  },
  writeFull(to, record) {
    const { calls, status } = record;
    const severity = isServerError(record) ? "ERROR" : status >= 400 ? "WARN" : "INFO";
    writeSeverity(to, severity, `${record.method} ${record.route} ${status}`, "tollgate.request");
    addRequestAttributes(to, record, keys);
    to.attributes
      .add("tollgate.served_model", record.served)
      .add("tollgate.credential", calls.at(-1)?.credential)
      .add("tollgate.mode", record.mode ?? undefined)
      .add("tollgate.stream", record.stream)
      .add("tollgate.finish_reason", record.finish);
  },
});

/**
 * Creates the options for spans and log records. `keys` adds the IDs of API keys and the names of
 * accounts.
 */
export function createSpanOptions(
  spellings: readonly NamingVersion[],
  { keys, labels }: { readonly keys: boolean; readonly labels: boolean },
): SpanOptions {
  const names = createSpanNames(spellings);
  return {
    names,
    templates: new TemplateCache(() => new TemplateSet()),
    request: createRequestTemplate(keys),
    call: createCallTemplate(names),
    logRecord: createLogTemplate(keys),
    labels,
  };
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
 * Writes the log record of a request that was rejected before routing. Such a request belongs to no
 * trace.
 */
export function writeRejectionLog(
  to: BatchItems,
  { at, id, status, code, method, listener }: RejectedRequest,
): void {
  to.begin();
  writeTimes(to, at);
  writeSeverity(to, "WARN", `${code} ${status}`, "tollgate.rejected");
  to.attributes
    .add("http.request.method", method)
    .add("http.response.status_code", status)
    .add("tollgate.request.id", id)
    .add("tollgate.error_code", code)
    .add("tollgate.listener", listener);
  to.end();
}

/**
 * Writes the log record of a gateway event. Scalar properties become attributes, so new event types
 * need no change here.
 */
export function writeEventLog(to: BatchItems, { type, at, ...more }: GatewayEvent): void {
  const bad = "ok" in more ? !more.ok : type === "worker_exited";
  const severity = bad
    ? "ERROR"
    : type === "cooldown_started" || type === "records_dropped"
      ? "WARN"
      : "INFO";
  to.begin();
  writeTimes(to, at);
  writeSeverity(to, severity, type, `tollgate.${type}`);
  for (const [name, value] of Object.entries(more)) {
    if (typeof value === "bigint") to.attributes.add(`tollgate.${name}`, String(value));
    else if (["string", "number", "boolean"].includes(typeof value))
      to.attributes.add(`tollgate.${name}`, value as string | number | boolean);
  }
  to.end();
}

function writeTimes(to: BatchItems, at: number): void {
  to.timestamp("timeUnixNano", at);
  to.timestamp("observedTimeUnixNano", at);
}

function writeSeverity(
  to: BatchItems,
  severity: keyof typeof SEVERITY,
  text: string,
  eventName: string,
): void {
  to.number("severityNumber", SEVERITY[severity]);
  to.text("severityText", severity);
  to.message("body", () => to.text("stringValue", text));
  to.text("eventName", eventName);
}
