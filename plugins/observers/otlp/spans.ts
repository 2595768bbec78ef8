// Encodes a request as spans: one server span, and one client span below it for each attempt. Only
// the spans of attempts have GenAI attributes, so that a backend that counts spans by these
// attributes counts each call once.
import {
  cacheReadTokens,
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
  MCP,
  TOOL_OPERATION,
  type NamingVersion,
} from "../genai-names.ts";
import { hedgeResult, sequentialCalls } from "../hedges.ts";
import { TemplateCache } from "../template-cache.ts";
import { formatUsd } from "../usd.ts";
import { Attributes, Time } from "./attributes.ts";
import type { ItemBatch, SharedBytes } from "./message-envelope.ts";
import type { ProtobufMessage } from "./message-shapes.ts";

export interface SpanOptions {
  /** Names of the GenAI attributes. */
  readonly names: SpanNames;
  /** Encoded fields that similar requests share. */
  readonly shared: TemplateCache<SharedBytes>;
  /** Whether to add the IDs of API keys and the names of accounts. */
  readonly keys: boolean;
  readonly labels: boolean;
}

/** Names of the GenAI attributes in the selected spellings. */
export type SpanNames = { readonly [N in keyof typeof NAMES]: readonly string[] };

/** Creates the options for spans and log records. */
export const createSpanOptions = (
  spellings: readonly NamingVersion[],
  { keys, labels }: { readonly keys: boolean; readonly labels: boolean },
): SpanOptions => ({
  names: createSpanNames(spellings),
  shared: new TemplateCache(() => new Map()),
  keys,
  labels,
});

const createSpanNames = (spellings: readonly NamingVersion[]): SpanNames =>
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
 * Adds the span of the request and then the spans of its attempts in order. `next` returns the
 * batch for the next span.
 */
export function addSpans(next: () => ItemBatch, record: RequestRecord, of: SpanOptions): void {
  const cache = of.shared.get(record);
  next().add(requestSpan(record, of), {
    cache,
    itemType: "request",
    create: () => ({
      name: spanName(record),
      kind: SERVER_KIND,
      status:
        isServerError(record) || (isMcp(record) && record.rpc!.errorType != null)
          ? ERROR_STATUS
          : undefined,
      attributes: requestAttributes(record, of),
    }),
  });
  for (const call of record.calls)
    next().add(callSpan(record, call, of), {
      cache,
      itemType: "call",
      create: () => sharedCallFields(record, call, of),
    });
}

const isMcp = ({ rpc }: RequestRecord): boolean => rpc?.system === MCP;

/** The name of a request of MCP consists of its method and its tool or prompt. */
const spanName = (record: RequestRecord): string => {
  const { method, target } = record.rpc ?? {};
  if (!isMcp(record)) return `${record.method} ${record.route}`;
  return target == null ? method! : `${method} ${target}`;
};

function requestSpan(record: RequestRecord, of: SpanOptions): ProtobufMessage {
  const { trace, at, ms } = record;
  const attributes = new Attributes().addDouble(
    "tollgate.overhead_seconds",
    record.overheadMs / 1_000,
  );
  addUniqueAttributes(attributes, record, of);
  return {
    traceId: trace.traceId,
    spanId: trace.spanId,
    traceState: trace.state,
    parentSpanId: trace.parentId,
    startTimeUnixNano: new Time(at - ms),
    endTimeUnixNano: new Time(at),
    attributes,
    events: record.calls.length > 1 ? attemptEvents(record) : undefined,
    flags: SAMPLED_FLAG | HAS_IS_REMOTE_FLAG | (trace.parentId === undefined ? 0 : IS_REMOTE_FLAG),
  };
}

/**
 * Returns the attributes that a request's span and its log record have in common and that similar
 * requests share.
 */
export function requestAttributes(record: RequestRecord, { keys, names }: SpanOptions): Attributes {
  const { fault, status } = record;
  const attributes = new Attributes()
    .add("http.request.method", record.method)
    .add("http.route", record.route)
    .add("http.response.status_code", status)
    .add("error.type", record.rpc?.errorType ?? (isServerError(record) ? fault?.kind : undefined))
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
  if (isMcp(record)) addMcpAttributes(attributes, record, names);
  if (keys) attributes.add("tollgate.key.id", record.key).add("tollgate.account", record.account);
  return attributes;
}

/** The name of a tool is an attribute of the call's span, so that each call is counted once. */
function addMcpAttributes(attributes: Attributes, { rpc }: RequestRecord, names: SpanNames): void {
  const { method, version, target, errorType } = rpc!;
  const isCode = errorType != null && /^-?\d+$/.test(errorType);
  attributes
    .addUnder(names.mcpMethod, method)
    .addUnder(names.mcpVersion, version ?? undefined)
    .addUnder(names.promptName, method === "prompts/get" ? (target ?? undefined) : undefined)
    .addUnder(names.rpcStatus, isCode ? errorType : undefined);
}

/** Adds the attributes that are unique to a request. */
export function addUniqueAttributes(
  attributes: Attributes,
  { id, session, labels }: RequestRecord,
  of: SpanOptions,
): void {
  attributes.add("tollgate.request.id", id).add("tollgate.session.id", session ?? undefined);
  if (of.labels) attributes.addAll(labels, "tollgate.label.");
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
 * Returns an event for each call after the first call. A call that was made while another call had
 * no content gets `tollgate.hedge`. A call after a failure gets `tollgate.retry` or
 * `tollgate.fallback`.
 */
function attemptEvents({ calls, at, ms }: RequestRecord): readonly ProtobufMessage[] | undefined {
  const row = sequentialCalls(calls);
  const events = calls.flatMap((call) => {
    const before = call.hedge
      ? calls.find(({ n }) => n === call.n - 1)
      : row[row.indexOf(call) - 1];
    if (!before) return [];
    const [from, target] = [before, call].map(({ provider, model }) => `${provider}/${model}`);
    return {
      timeUnixNano: new Time(at - ms + call.startMs),
      name: call.hedge
        ? "tollgate.hedge"
        : from === target
          ? "tollgate.retry"
          : "tollgate.fallback",
      attributes: new Attributes()
        .add("tollgate.from", from)
        .add("tollgate.to", target)
        .add("error.type", call.hedge ? undefined : before.fault?.kind),
    };
  });
  return events.length > 0 ? events : undefined;
}

function callSpan(
  { trace, at, ms }: RequestRecord,
  call: RequestRecordCall,
  { names }: SpanOptions,
): ProtobufMessage {
  const start = Math.min(at - ms + call.startMs, at);
  const end = Math.min(start + call.ms.total, at);
  const { firstToken } = call.ms;
  return {
    traceId: trace.traceId,
    spanId: call.spanId,
    traceState: trace.state,
    parentSpanId: trace.spanId,
    startTimeUnixNano: new Time(start),
    endTimeUnixNano: new Time(end),
    attributes: usageAttributes(call, names),
    events:
      firstToken === undefined
        ? undefined
        : [
            {
              timeUnixNano: new Time(Math.min(start + firstToken, end)),
              name: "tollgate.first_token",
            },
          ],
  };
}

function usageAttributes(
  { usage, costNano, ms: { firstToken } }: RequestRecordCall,
  names: SpanNames,
): Attributes {
  const attributes = new Attributes();
  if (firstToken !== undefined)
    for (const name of names.firstChunk) attributes.addDouble(name, firstToken / 1_000);
  return attributes
    .addUnder(names.inputTokens, inputTokenCount(usage))
    .addUnder(names.outputTokens, outputTokenCount(usage))
    .addUnder(names.cacheRead, cachedTokenCount(usage))
    .addUnder(names.cacheWrite, cacheWrites(usage))
    .addUnder(names.reasoning, usage.reasoning)
    .addUnder(names.audioInput, usage.audio_in)
    .addUnder(names.audioOutput, usage.audio_out)
    .addUnder(names.imageInput, usage.image_in)
    .addUnder(names.imageOutput, usage.image_out)
    .add("tollgate.cost.usd", costNano === null ? undefined : formatUsd(costNano));
}

/** Returns the fields that similar calls share. */
function sharedCallFields(
  { operation, stream, finish }: RequestRecord,
  call: RequestRecordCall,
  { names }: SpanOptions,
): ProtobufMessage {
  const { fault } = call;
  if (call.protocol === MCP) return sharedToolFields(call, names);
  return {
    name: `${genAiOperation(operation)} ${call.model}`,
    kind: CLIENT_KIND,
    flags: SAMPLED_FLAG | HAS_IS_REMOTE_FLAG,
    status: fault !== undefined && fault.kind !== "canceled" ? ERROR_STATUS : undefined,
    attributes: new Attributes()
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
      .add("tollgate.transport", call.transport ?? undefined)
      .add("tollgate.bill_state", call.state),
  };
}

/** Returns the fields that similar calls of a tool at an MCP server share. */
function sharedToolFields(call: RequestRecordCall, names: SpanNames): ProtobufMessage {
  const { fault } = call;
  return {
    name: `tools/call ${call.model}`,
    kind: CLIENT_KIND,
    flags: SAMPLED_FLAG | HAS_IS_REMOTE_FLAG,
    status: fault !== undefined && fault.kind !== "canceled" ? ERROR_STATUS : undefined,
    attributes: new Attributes()
      .addUnder(names.operation, TOOL_OPERATION)
      .addUnder(names.mcpMethod, "tools/call")
      .addUnder(names.toolName, call.model)
      .add("network.transport", "tcp")
      .add(NAMES.errorType.latest, fault?.kind)
      .add("tollgate.error_code", safeErrorCode(fault))
      .add("tollgate.attempt", call.n)
      .add("tollgate.provider", call.provider)
      .add("tollgate.credential", call.credential)
      .add("tollgate.bill_state", call.state),
  };
}

/** Returns undefined if no provider counted tokens. */
export const inputTokenCount = (usage: Usage): number | undefined =>
  usage.input === undefined && usage.cache_read === undefined ? undefined : inputTokens(usage);
const cachedTokenCount = (usage: Usage): number | undefined =>
  usage.cache_read === undefined ? undefined : cacheReadTokens(usage);
export const outputTokenCount = (usage: Usage): number | undefined =>
  usage.output === undefined ? undefined : outputTokens(usage);

const CACHE_WRITE_UNITS = UNITS.filter((unit) => unit.startsWith("cache_write_"));

function cacheWrites(usage: Usage): number | undefined {
  let sum: number | undefined;
  for (const unit of CACHE_WRITE_UNITS)
    if (usage[unit] !== undefined) sum = (sum ?? 0) + usage[unit];
  return sum;
}
