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
import {
  GEN_AI_ATTRIBUTES as NAMES,
  namesOf,
  genAiOperation,
  genAiProvider,
  type NamingVersion,
} from "../genai-names.ts";
import { hedgeResult, sequentialCalls } from "../hedges.ts";
import { formatUsd } from "../usd.ts";
import { Attributes, toNanos } from "./attributes.ts";
import type { ItemBatch } from "./message-envelope.ts";
import type { ProtobufMessage } from "./message-shapes.ts";

export interface SpanOptions {
  /** Names of the GenAI attributes. */
  readonly names: SpanNames;
  /** Whether to add the IDs of API keys and the names of accounts. */
  readonly keys: boolean;
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
const ERROR_STATUS = { code: 2 };
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
 * Adds the span of the request and then those of its attempts in order. `next` returns the batch
 * for the next span.
 */
export function addSpans(next: () => ItemBatch, record: RequestRecord, of: SpanOptions): void {
  next().add(requestSpan(record, of));
  for (const call of record.calls) next().add(callSpan(record, call, of));
}

function requestSpan(record: RequestRecord, of: SpanOptions): ProtobufMessage {
  const { trace, at, ms } = record;
  const attributes = new Attributes().addDouble(
    "tollgate.overhead_seconds",
    record.overheadMs / 1_000,
  );
  addRequestAttributes(attributes, record, of);
  return {
    traceId: trace.traceId,
    spanId: trace.spanId,
    traceState: trace.state,
    parentSpanId: trace.parentId,
    name: `${record.method} ${record.route}`,
    kind: SERVER_KIND,
    startTimeUnixNano: toNanos(at - ms),
    endTimeUnixNano: toNanos(at),
    attributes: attributes.list,
    events: record.calls.length > 1 ? attemptEvents(record) : undefined,
    status: isServerError(record) ? ERROR_STATUS : undefined,
    flags: SAMPLED_FLAG | HAS_IS_REMOTE_FLAG | (trace.parentId === undefined ? 0 : IS_REMOTE_FLAG),
  };
}

/** Adds the attributes that a request's span and its log record have in common. */
export function addRequestAttributes(
  attributes: Attributes,
  record: RequestRecord,
  { keys, labels }: SpanOptions,
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
  attributes.add("tollgate.request.id", record.id);
  if (labels) attributes.addAll(record.labels, "tollgate.label.");
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
 * Returns events for the calls after the first one: `tollgate.hedge` for a call made while another
 * one had no content, `tollgate.retry` or `tollgate.fallback` for one made after a failure.
 */
function attemptEvents({ calls, at, ms }: RequestRecord): readonly ProtobufMessage[] {
  const row = sequentialCalls(calls);
  return calls.flatMap((call) => {
    const before = call.hedge
      ? calls.find(({ n }) => n === call.n - 1)
      : row[row.indexOf(call) - 1];
    if (!before) return [];
    const [from, target] = [before, call].map(({ provider, model }) => `${provider}/${model}`);
    return {
      timeUnixNano: toNanos(at - ms + call.startMs),
      name: call.hedge
        ? "tollgate.hedge"
        : from === target
          ? "tollgate.retry"
          : "tollgate.fallback",
      attributes: new Attributes()
        .add("tollgate.from", from)
        .add("tollgate.to", target)
        .add("error.type", call.hedge ? undefined : before.fault?.kind).list,
    };
  });
}

function callSpan(
  record: RequestRecord,
  call: RequestRecordCall,
  { names }: SpanOptions,
): ProtobufMessage {
  const { trace, at, ms } = record;
  const { fault } = call;
  const start = Math.min(at - ms + call.startMs, at);
  const end = Math.min(start + call.ms.total, at);
  const { firstToken } = call.ms;
  return {
    traceId: trace.traceId,
    spanId: call.spanId,
    traceState: trace.state,
    parentSpanId: trace.spanId,
    name: `${genAiOperation(record.operation)} ${call.model}`,
    kind: CLIENT_KIND,
    startTimeUnixNano: toNanos(start),
    endTimeUnixNano: toNanos(end),
    attributes: callAttributes(record, call, names),
    events:
      firstToken === undefined
        ? undefined
        : [
            {
              timeUnixNano: toNanos(Math.min(start + firstToken, end)),
              name: "tollgate.first_token",
            },
          ],
    status: fault !== undefined && fault.kind !== "canceled" ? ERROR_STATUS : undefined,
    flags: SAMPLED_FLAG | HAS_IS_REMOTE_FLAG,
  };
}

function callAttributes(
  { operation, stream, finish }: RequestRecord,
  call: RequestRecordCall,
  names: SpanNames,
): Attributes["list"] {
  const { fault, usage, costNano } = call;
  const { firstToken } = call.ms;
  const attributes = new Attributes();
  if (firstToken !== undefined)
    for (const name of names.firstChunk) attributes.addDouble(name, firstToken / 1_000);
  return attributes
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
    .add("tollgate.bill_state", call.state)
    .addUnder(names.inputTokens, inputTokenCount(usage))
    .addUnder(names.outputTokens, outputTokenCount(usage))
    .addUnder(names.cacheRead, usage.cache_read)
    .addUnder(names.cacheWrite, cacheWrites(usage))
    .addUnder(names.reasoning, usage.reasoning)
    .addUnder(names.audioInput, usage.audio_in)
    .addUnder(names.audioOutput, usage.audio_out)
    .addUnder(names.imageInput, usage.image_in)
    .addUnder(names.imageOutput, usage.image_out)
    .add("tollgate.cost.usd", costNano === null ? undefined : formatUsd(costNano)).list;
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
