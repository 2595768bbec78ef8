// A request as spans: one of the server, and below it one of the client for each attempt at a provider. Only those of attempts
// speak of generative AI, so that a backend that counts by these names counts each call once.
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
  operationOf,
  providerOf,
  type Spelling,
} from "../genai.ts";
import { type Attributes, ListedAttributes, nanos, usd } from "./attributes.ts";
import type { Message } from "./protobuf.ts";

export interface SpanOptions {
  /** As what its protocol has attributes, of spans and of lines. */
  readonly attributes: (of: "span" | "log") => Attributes;
  /** Of the names of generative AI. */
  readonly names: SpanNames;
  /** Whether the ids of keys and the names of accounts are told. */
  readonly keys: boolean;
  readonly labels: boolean;
}

/** The names of generative AI, in the spellings that are wanted. */
export type SpanNames = { readonly [N in keyof typeof NAMES]: readonly string[] };

export const spanNames = (spellings: readonly Spelling[]): SpanNames =>
  Object.fromEntries(
    Object.entries(NAMES).map(([name, of]) => [name, namesOf(of, spellings)]),
  ) as unknown as SpanNames;

const SERVER = 2;
const CLIENT = 3;
const ERROR = { code: 2 };
/** Of the flags of a span: it is sampled; whether its parent is of another process is said, and it is. */
const SAMPLED = 1;
const HAS_REMOTE = 0x100;
const REMOTE = 0x200;

/** Its own first, then its attempts in order. */
export function spansOf(record: RequestRecord, of: SpanOptions): Message[] {
  const { trace, at, ms } = record;
  const begin = at - ms;
  const remote = trace.parentId === undefined ? 0 : REMOTE;
  const own: Message = {
    traceId: trace.traceId,
    spanId: trace.spanId,
    traceState: trace.state,
    parentSpanId: trace.parentId,
    name: `${record.method} ${record.route}`,
    kind: SERVER,
    startTimeUnixNano: nanos(begin),
    endTimeUnixNano: nanos(at),
    attributes: requestAttributes(of.attributes("span"), record, of).written,
    events: attempts(record, begin),
    status: hasFailed(record) ? ERROR : undefined,
    flags: SAMPLED | HAS_REMOTE | remote,
  };
  return [own, ...record.calls.map((call) => callSpan(record, call, of))];
}

/** What a request and its line in the log say of it. */
export function requestAttributes<A extends Attributes>(
  attributes: A,
  record: RequestRecord,
  of: SpanOptions,
): A {
  const { fault, status } = record;
  attributes
    .add("http.request.method", record.method)
    .add("http.route", record.route)
    .add("http.response.status_code", status)
    .add("error.type", fault && (hasFailed(record) ? fault.kind : undefined))
    .once("tollgate.request.id", record.id)
    .add("tollgate.frontend", record.frontend)
    .add("tollgate.kind", record.kind)
    .add("tollgate.operation", record.op)
    .add("tollgate.model", record.model === "" ? undefined : record.model)
    .add("tollgate.outcome", record.outcome)
    .add("tollgate.fault", fault?.kind)
    .add("tollgate.fault.code", codeOf(fault))
    .add("tollgate.privacy", record.privacy)
    .add("tollgate.attempts", record.calls.length)
    .add("tollgate.losses", record.losses)
    .add("tollgate.cached", record.cached)
    .double("tollgate.own_seconds", record.ownMs / 1_000);
  if (of.keys)
    attributes.add("tollgate.key.id", record.key).add("tollgate.account", record.account);
  if (of.labels) attributes.all(record.labels, "tollgate.label.");
  return attributes;
}

/** A server's span fails by what is not its client's doing. */
export const hasFailed = ({ outcome }: RequestRecord): boolean =>
  outcome === "upstream_error" || outcome === "error";

/** A provider may have chosen it: what is no word is not passed on. */
const codeOf = (fault: RequestRecord["fault"]): string | undefined =>
  fault?.code !== undefined && /^[\w.-]{1,64}$/.test(fault.code) ? fault.code : undefined;

/** Why another attempt was made: at another provider or model, or at the same one in another way. */
function attempts({ calls }: RequestRecord, begin: number): Message[] {
  return calls.slice(1).map((call, i) => {
    const before = calls[i]!;
    const [from, to] = [before, call].map(({ provider, model }) => `${provider}/${model}`);
    return {
      timeUnixNano: nanos(begin + call.startMs),
      name: from === to ? "tollgate.retry" : "tollgate.fallback",
      attributes: new ListedAttributes()
        .add("tollgate.from", from)
        .add("tollgate.to", to)
        .add("error.type", before.fault?.kind).written,
    };
  });
}

function callSpan(record: RequestRecord, call: RequestRecordCall, of: SpanOptions): Message {
  const { trace, at, ms } = record;
  const start = Math.min(at - ms + call.startMs, at);
  const end = Math.min(start + call.ms.total, at);
  const { content } = call.ms;
  const failed = call.fault !== undefined && call.fault.kind !== "canceled";
  return {
    traceId: trace.traceId,
    spanId: call.spanId,
    traceState: trace.state,
    parentSpanId: trace.spanId,
    name: `${operationOf(record.kind)} ${call.model}`,
    kind: CLIENT,
    startTimeUnixNano: nanos(start),
    endTimeUnixNano: nanos(end),
    attributes: callAttributes(record, call, of).written,
    events:
      content === undefined
        ? undefined
        : [{ timeUnixNano: nanos(Math.min(start + content, end)), name: "tollgate.first_content" }],
    status: failed ? ERROR : undefined,
    flags: SAMPLED | HAS_REMOTE,
  };
}

function callAttributes(
  { kind, stream, finish }: RequestRecord,
  call: RequestRecordCall,
  { attributes: made, names }: SpanOptions,
): Attributes {
  const { usage, fault, ms } = call;
  const attributes = made("span")
    .each(names.operation, operationOf(kind))
    .each(names.provider, providerOf(call.provider))
    .each(names.requestModel, call.model)
    .each(names.stream, stream);
  if (!fault && finish !== undefined) attributes.each(names.finishReasons, [finish]);
  if (ms.content !== undefined)
    for (const name of names.firstChunk) attributes.double(name, ms.content / 1_000);
  attributes
    .each(names.inputTokens, readTokens(usage))
    .each(names.outputTokens, writtenTokens(usage))
    .each(names.cacheRead, usage.cache_read)
    .each(names.cacheWrite, cacheWrites(usage))
    .each(names.reasoning, usage.reasoning)
    .each(names.audioInput, usage.audio_in)
    .each(names.audioOutput, usage.audio_out)
    .each(names.imageInput, usage.image_in)
    .each(names.imageOutput, usage.image_out);
  return attributes
    .add(NAMES.errorType.latest, fault?.kind)
    .add("tollgate.fault.code", codeOf(fault))
    .add("tollgate.attempt", call.n)
    .add("tollgate.provider", call.provider)
    .add("tollgate.credential", call.credential)
    .add("tollgate.lane", call.lane)
    .add("tollgate.state", call.state)
    .add("tollgate.cost.usd", call.costNano === null ? undefined : usd(call.costNano));
}

/** Undefined where no provider has counted. */
export const readTokens = (usage: Usage): number | undefined =>
  usage.input === undefined && usage.cache_read === undefined ? undefined : inputTokens(usage);
export const writtenTokens = (usage: Usage): number | undefined =>
  usage.output === undefined ? undefined : outputTokens(usage);

const WRITES = UNITS.filter((unit) => unit.startsWith("cache_write_"));

function cacheWrites(usage: Usage): number | undefined {
  let sum: number | undefined;
  for (const unit of WRITES) if (usage[unit] !== undefined) sum = (sum ?? 0) + usage[unit];
  return sum;
}
