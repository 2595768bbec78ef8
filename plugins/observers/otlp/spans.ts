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
  type GenAiName,
  type Spelling,
} from "../genai.ts";
import { Attributes, nanos, usd } from "./attributes.ts";
import type { Message } from "./protobuf.ts";

export interface SpanOptions {
  /** Of the names of generative AI. */
  readonly spellings: readonly Spelling[];
  /** Whether the ids of keys and the names of accounts are told. */
  readonly keys: boolean;
  readonly labels: boolean;
}

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
    attributes: requestAttributes(record, of).list,
    events: attempts(record, begin),
    status: hasFailed(record) ? ERROR : undefined,
    flags: SAMPLED | HAS_REMOTE | remote,
  };
  return [own, ...record.calls.map((call) => callSpan(record, call, of))];
}

/** What a request and its line in the log say of it. */
export function requestAttributes(record: RequestRecord, of: SpanOptions): Attributes {
  const { fault, status } = record;
  const attributes = new Attributes()
    .add("http.request.method", record.method)
    .add("http.route", record.route)
    .add("http.response.status_code", status)
    .add("error.type", fault && (hasFailed(record) ? fault.kind : undefined))
    .add("tollgate.request.id", record.id)
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
      attributes: new Attributes()
        .add("tollgate.from", from)
        .add("tollgate.to", to)
        .add("error.type", before.fault?.kind).list,
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
    attributes: callAttributes(record, call, of.spellings).list,
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
  spellings: readonly Spelling[],
): Attributes {
  const { usage, fault, ms } = call;
  const attributes = new Attributes();
  const say = (name: GenAiName, value: Parameters<Attributes["add"]>[1]) =>
    attributes.each(namesOf(name, spellings), value);
  say(NAMES.operation, operationOf(kind));
  say(NAMES.provider, providerOf(call.provider));
  say(NAMES.requestModel, call.model);
  say(NAMES.stream, stream);
  if (!fault && finish !== undefined) say(NAMES.finishReasons, [finish]);
  for (const name of namesOf(NAMES.firstChunk, spellings))
    attributes.double(name, ms.content === undefined ? undefined : ms.content / 1_000);
  say(NAMES.inputTokens, readTokens(usage));
  say(NAMES.outputTokens, writtenTokens(usage));
  say(NAMES.cacheRead, usage.cache_read);
  say(NAMES.cacheWrite, cacheWrites(usage));
  say(NAMES.reasoning, usage.reasoning);
  say(NAMES.audioInput, usage.audio_in);
  say(NAMES.audioOutput, usage.audio_out);
  say(NAMES.imageInput, usage.image_in);
  say(NAMES.imageOutput, usage.image_out);
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
