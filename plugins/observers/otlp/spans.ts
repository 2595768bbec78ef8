// Encodes a request as spans: one server span, and one client span below it for each attempt. Only
// the spans of attempts have GenAI attributes, so a backend that counts by these counts each call
// once.
import {
  inputTokens,
  outputTokens,
  UNITS,
  type RequestRecord,
  type RequestRecordCall,
  type Usage,
} from "tollgate/plugin";
import type { TemplateCache } from "../template-cache.ts";
import {
  GEN_AI_ATTRIBUTES as NAMES,
  namesOf,
  genAiOperation,
  genAiProvider,
  type NamingVersion,
} from "../genai-names.ts";
import { hedgeResult, sequentialCalls } from "../hedges.ts";
import { formatUsd } from "../usd.ts";
import type { BatchItems, TemplateSet, TemplateWriter } from "./batch-items.ts";

export interface SpanOptions {
  /** Names of the GenAI attributes. */
  readonly names: SpanNames;
  /** Templates for the parts that many requests share. */
  readonly templates: TemplateCache<TemplateSet>;
  readonly request: TemplateWriter<RequestRecord>;
  readonly call: TemplateWriter<RecordedCall>;
  readonly logRecord: TemplateWriter<RequestRecord>;
  readonly labels: boolean;
}

/** Names of the GenAI attributes in the selected spellings. */
export type SpanNames = { readonly [N in keyof typeof NAMES]: readonly string[] };

export const createSpanNames = (spellings: readonly NamingVersion[]): SpanNames =>
  Object.fromEntries(
    Object.entries(NAMES).map(([name, of]) => [name, namesOf(of, spellings)]),
  ) as unknown as SpanNames;

const SERVER_KIND = 2;
const CLIENT_KIND = 3;
const ERROR_STATUS = 2;
/**
 * Span flags: the span is sampled, it states whether its parent is remote, and its parent is
 * remote.
 */
const SAMPLED_FLAG = 1;
const HAS_IS_REMOTE_FLAG = 0x100;
const IS_REMOTE_FLAG = 0x200;

/** Returns the number of a request's spans. */
export const countSpans = ({ calls }: RequestRecord): number => 1 + calls.length;

/**
 * Writes the span of the request and then those of its attempts in order. `next` returns the batch
 * for the next span.
 */
export function writeSpans(next: () => BatchItems, record: RequestRecord, of: SpanOptions): void {
  const kept = of.templates.get(record);
  writeRequestSpan(next(), record, of, kept);
  for (const call of record.calls) writeCallSpan(next(), { record, call }, of, kept);
}

function writeRequestSpan(
  to: BatchItems,
  record: RequestRecord,
  of: SpanOptions,
  kept: TemplateSet | undefined,
): void {
  to.begin();
  to.writeFromTemplate(
    kept,
    record.trace.parentId === undefined ? "rootRequest" : "childRequest",
    record,
    of.request,
  );
  to.text("traceState", record.trace.state);
  addUniqueAttributes(to, record, of);
  if (record.calls.length > 1) addAttemptEvents(to, record);
  to.end();
}

export const createRequestTemplate = (keys: boolean): TemplateWriter<RequestRecord> => ({
  writeVariable(to, { trace, at, ms, overheadMs }) {
    to.id("traceId", trace.traceId);
    to.id("spanId", trace.spanId);
    to.id("parentSpanId", trace.parentId);
    to.timestamp("startTimeUnixNano", at - ms);
    to.timestamp("endTimeUnixNano", at);
    to.attributes.addDouble("tollgate.overhead_seconds", overheadMs / 1_000);
  },
  writeFull(to, record) {
    to.number(
      "flags",
      SAMPLED_FLAG |
        HAS_IS_REMOTE_FLAG |
        (record.trace.parentId === undefined ? 0 : IS_REMOTE_FLAG),
    );
    to.text("name", `${record.method} ${record.route}`);
    to.number("kind", SERVER_KIND);
    if (isServerError(record)) to.message("status", () => to.number("code", ERROR_STATUS));
    addRequestAttributes(to, record, keys);
  },
});

/**
 * Adds the attributes that a request's span and log record have in common and that similar requests
 * share.
 */
export function addRequestAttributes(
  { attributes }: BatchItems,
  record: RequestRecord,
  keys: boolean,
): void {
  const { fault, status } = record;
  attributes
    .add("http.request.method", record.method)
    .add("http.route", record.route)
    .add("http.response.status_code", status)
    .add("error.type", fault && (isServerError(record) ? fault.kind : undefined))
    .add("tollgate.frontend", record.frontend)
    .add("tollgate.operation", record.operation)
    .add("tollgate.action_type", record.actionType)
    .add("tollgate.model", record.model === "" ? undefined : record.model)
    .add("tollgate.outcome", record.outcome)
    .add("tollgate.error_kind", fault?.kind)
    .add("tollgate.error_code", safeErrorCode(fault))
    .add("tollgate.privacy", record.privacy)
    .add("tollgate.attempts", record.calls.length)
    .add("tollgate.translation_warnings", record.losses)
    .add("tollgate.cached", record.cached);
  if (keys) attributes.add("tollgate.key.id", record.key).add("tollgate.account", record.account);
}

/** Adds the attributes that are unique to a request. */
export function addUniqueAttributes(
  to: BatchItems,
  { id, labels }: RequestRecord,
  of: SpanOptions,
): void {
  to.attributes.add("tollgate.request.id", id);
  if (of.labels) to.attributes.addAll(labels, "tollgate.label.");
}

/** Whether the server span has an error status. Errors caused by the client do not count. */
export const isServerError = ({ outcome }: RequestRecord): boolean =>
  outcome === "upstream_error" || outcome === "error";

/**
 * Returns the error code if it is a plain word. A provider may have chosen the code, so other text
 * is dropped.
 */
const safeErrorCode = (fault: RequestRecord["fault"]): string | undefined =>
  fault?.code !== undefined && /^[\w.-]{1,64}$/.test(fault.code) ? fault.code : undefined;

/**
 * Adds events for the calls after the first one: `tollgate.hedge` for a call made while another one
 * had no content, `tollgate.retry` or `tollgate.fallback` for one made after a failure.
 */
function addAttemptEvents(to: BatchItems, { calls, at, ms }: RequestRecord): void {
  const row = sequentialCalls(calls);
  for (const call of calls) {
    const before = call.hedge
      ? calls.find(({ n }) => n === call.n - 1)
      : row[row.indexOf(call) - 1];
    if (!before) continue;
    const [from, target] = [before, call].map(({ provider, model }) => `${provider}/${model}`);
    to.message("events", () => {
      to.timestamp("timeUnixNano", at - ms + call.startMs);
      to.text(
        "name",
        call.hedge ? "tollgate.hedge" : from === target ? "tollgate.retry" : "tollgate.fallback",
      );
      to.attributes
        .add("tollgate.from", from)
        .add("tollgate.to", target)
        .add("error.type", call.hedge ? undefined : before.fault?.kind);
    });
  }
}

export interface RecordedCall {
  readonly record: RequestRecord;
  readonly call: RequestRecordCall;
}

function writeCallSpan(
  to: BatchItems,
  called: RecordedCall,
  of: SpanOptions,
  kept: TemplateSet | undefined,
): void {
  to.begin();
  to.writeFromTemplate(
    kept,
    called.call.ms.firstToken === undefined ? "call" : "callWithContent",
    called,
    of.call,
  );
  to.text("traceState", called.record.trace.state);
  addUsageAttributes(to, called.call, of.names);
  to.end();
}

export const createCallTemplate = (names: SpanNames): TemplateWriter<RecordedCall> => ({
  writeVariable(to, { record: { trace, at, ms }, call }) {
    const start = Math.min(at - ms + call.startMs, at);
    const end = Math.min(start + call.ms.total, at);
    const { firstToken } = call.ms;
    to.id("traceId", trace.traceId);
    to.id("spanId", call.spanId);
    to.id("parentSpanId", trace.spanId);
    to.timestamp("startTimeUnixNano", start);
    to.timestamp("endTimeUnixNano", end);
    if (firstToken === undefined) return;
    for (const name of names.firstChunk) to.attributes.addDouble(name, firstToken / 1_000);
    to.message("events", () => {
      to.timestamp("timeUnixNano", Math.min(start + firstToken, end));
      to.text("name", "tollgate.first_token");
    });
  },
  writeFull: (to, { record, call }) => addCallAttributes(to, record, call, names),
});

/** Adds the attributes that similar calls share. */
function addCallAttributes(
  to: BatchItems,
  { operation, stream, finish }: RequestRecord,
  call: RequestRecordCall,
  names: SpanNames,
): void {
  const { fault } = call;
  const failed = fault !== undefined && fault.kind !== "canceled";
  to.text("name", `${genAiOperation(operation)} ${call.model}`);
  to.number("kind", CLIENT_KIND);
  to.number("flags", SAMPLED_FLAG | HAS_IS_REMOTE_FLAG);
  if (failed) to.message("status", () => to.number("code", ERROR_STATUS));
  to.attributes
    .addUnder(names.operation, genAiOperation(operation))
    .addUnder(names.provider, genAiProvider(call.provider))
    .addUnder(names.requestModel, call.model)
    .addUnder(names.stream, stream)
    .addUnder(names.finishReasons, fault || finish === undefined ? undefined : [finish])
    .add(NAMES.errorType.latest, fault?.kind)
    .add("tollgate.error_code", safeErrorCode(fault))
    .add("tollgate.attempt", call.n)
    .add("tollgate.hedge", hedgeResult(call))
    .add("tollgate.provider", call.provider)
    .add("tollgate.credential", call.credential)
    .add("tollgate.mode", call.mode)
    .add("tollgate.bill_state", call.state);
}

function addUsageAttributes(
  { attributes }: BatchItems,
  { usage, costNano }: RequestRecordCall,
  names: SpanNames,
): void {
  attributes
    .addUnder(names.inputTokens, inputTokenCount(usage))
    .addUnder(names.outputTokens, outputTokenCount(usage))
    .addUnder(names.cacheRead, usage.cache_read)
    .addUnder(names.cacheWrite, cacheWrites(usage))
    .addUnder(names.reasoning, usage.reasoning)
    .addUnder(names.audioInput, usage.audio_in)
    .addUnder(names.audioOutput, usage.audio_out)
    .addUnder(names.imageInput, usage.image_in)
    .addUnder(names.imageOutput, usage.image_out)
    .add("tollgate.cost.usd", costNano === null ? undefined : formatUsd(costNano));
}

/** Returns undefined if no provider counted tokens. */
export const inputTokenCount = (usage: Usage): number | undefined =>
  usage.input === undefined && usage.cache_read === undefined ? undefined : inputTokens(usage);
export const outputTokenCount = (usage: Usage): number | undefined =>
  usage.output === undefined ? undefined : outputTokens(usage);

const CACHE_WRITE_UNITS = UNITS.filter((unit) => unit.startsWith("cache_write_"));

function cacheWrites(usage: Usage): number | undefined {
  let sum: number | undefined;
  for (const unit of CACHE_WRITE_UNITS)
    if (usage[unit] !== undefined) sum = (sum ?? 0) + usage[unit];
  return sum;
}
