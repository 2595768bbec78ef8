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
import type { Alike } from "../alike.ts";
import {
  GEN_AI_ATTRIBUTES as NAMES,
  namesOf,
  operationOf,
  providerOf,
  type Spelling,
} from "../genai.ts";
import { hedgeResult, inSequence } from "../hedges.ts";
import { usd } from "../usd.ts";
import type { Items, Kept, Likeness } from "./items.ts";

export interface SpanOptions {
  /** Of the names of generative AI. */
  readonly names: SpanNames;
  /** What is said of many requests alike. */
  readonly alike: Alike<Kept>;
  readonly request: Likeness<RequestRecord>;
  readonly call: Likeness<Called>;
  readonly line: Likeness<RequestRecord>;
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
const ERROR = 2;
/** Of the flags of a span: it is sampled; whether its parent is of another process is said, and it is. */
const SAMPLED = 1;
const HAS_REMOTE = 0x100;
const REMOTE = 0x200;

/** How many spans a request has. */
export const spansOf = ({ calls }: RequestRecord): number => 1 + calls.length;

/** Its own first, then its attempts in order. `next`: where the next of them goes. */
export function saySpans(next: () => Items, record: RequestRecord, of: SpanOptions): void {
  const kept = of.alike.of(record);
  requestSpan(next(), record, of, kept);
  for (const call of record.calls) callSpan(next(), { record, call }, of, kept);
}

function requestSpan(
  to: Items,
  record: RequestRecord,
  of: SpanOptions,
  kept: Kept | undefined,
): void {
  to.begin();
  to.alike(kept, record.trace.parentId === undefined ? "request" : "child", record, of.request);
  to.text("traceState", record.trace.state);
  ofItsOwn(to, record, of);
  if (record.calls.length > 1) attempts(to, record);
  to.end();
}

export const requestLikeness = (keys: boolean): Likeness<RequestRecord> => ({
  each(to, { trace, at, ms, ownMs }) {
    to.id("traceId", trace.traceId);
    to.id("spanId", trace.spanId);
    to.id("parentSpanId", trace.parentId);
    to.moment("startTimeUnixNano", at - ms);
    to.moment("endTimeUnixNano", at);
    to.attributes.double("tollgate.own_seconds", ownMs / 1_000);
  },
  all(to, record) {
    to.number("flags", SAMPLED | HAS_REMOTE | (record.trace.parentId === undefined ? 0 : REMOTE));
    to.text("name", `${record.method} ${record.route}`);
    to.number("kind", SERVER);
    if (hasFailed(record)) to.within("status", () => to.number("code", ERROR));
    aboutRequest(to, record, keys);
  },
});

/** What a request and its line in the log say of it, and what others may have alike. */
export function aboutRequest({ attributes }: Items, record: RequestRecord, keys: boolean): void {
  const { fault, status } = record;
  attributes
    .add("http.request.method", record.method)
    .add("http.route", record.route)
    .add("http.response.status_code", status)
    .add("error.type", fault && (hasFailed(record) ? fault.kind : undefined))
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
    .add("tollgate.cached", record.cached);
  if (keys) attributes.add("tollgate.key.id", record.key).add("tollgate.account", record.account);
}

/** What no other has. */
export function ofItsOwn(to: Items, { id, labels }: RequestRecord, of: SpanOptions): void {
  to.attributes.add("tollgate.request.id", id);
  if (of.labels) to.attributes.all(labels, "tollgate.label.");
}

/** A server's span fails by what is not its client's doing. */
export const hasFailed = ({ outcome }: RequestRecord): boolean =>
  outcome === "upstream_error" || outcome === "error";

/** A provider may have chosen it: what is no word is not passed on. */
const codeOf = (fault: RequestRecord["fault"]): string | undefined =>
  fault?.code !== undefined && /^[\w.-]{1,64}$/.test(fault.code) ? fault.code : undefined;

/**
 * Events for the calls after the first one: `tollgate.hedge` for a call made while another one had no content, `tollgate.retry` or
 * `tollgate.fallback` for one made after a failure.
 */
function attempts(to: Items, { calls, at, ms }: RequestRecord): void {
  const row = inSequence(calls);
  for (const call of calls) {
    const before = call.hedge
      ? calls.find(({ n }) => n === call.n - 1)
      : row[row.indexOf(call) - 1];
    if (!before) continue;
    const [from, target] = [before, call].map(({ provider, model }) => `${provider}/${model}`);
    to.within("events", () => {
      to.moment("timeUnixNano", at - ms + call.startMs);
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

export interface Called {
  readonly record: RequestRecord;
  readonly call: RequestRecordCall;
}

function callSpan(to: Items, called: Called, of: SpanOptions, kept: Kept | undefined): void {
  to.begin();
  to.alike(kept, called.call.ms.content === undefined ? "call" : "told", called, of.call);
  to.text("traceState", called.record.trace.state);
  measures(to, called.call, of.names);
  to.end();
}

export const callLikeness = (names: SpanNames): Likeness<Called> => ({
  each(to, { record: { trace, at, ms }, call }) {
    const start = Math.min(at - ms + call.startMs, at);
    const end = Math.min(start + call.ms.total, at);
    const { content } = call.ms;
    to.id("traceId", trace.traceId);
    to.id("spanId", call.spanId);
    to.id("parentSpanId", trace.spanId);
    to.moment("startTimeUnixNano", start);
    to.moment("endTimeUnixNano", end);
    if (content === undefined) return;
    for (const name of names.firstChunk) to.attributes.double(name, content / 1_000);
    to.within("events", () => {
      to.moment("timeUnixNano", Math.min(start + content, end));
      to.text("name", "tollgate.first_content");
    });
  },
  all: (to, { record, call }) => aboutCall(to, record, call, names),
});

/** What other calls may have alike. */
function aboutCall(
  to: Items,
  { kind, stream, finish }: RequestRecord,
  call: RequestRecordCall,
  names: SpanNames,
): void {
  const { fault } = call;
  const failed = fault !== undefined && fault.kind !== "canceled";
  to.text("name", `${operationOf(kind)} ${call.model}`);
  to.number("kind", CLIENT);
  to.number("flags", SAMPLED | HAS_REMOTE);
  if (failed) to.within("status", () => to.number("code", ERROR));
  to.attributes
    .each(names.operation, operationOf(kind))
    .each(names.provider, providerOf(call.provider))
    .each(names.requestModel, call.model)
    .each(names.stream, stream)
    .each(names.finishReasons, fault || finish === undefined ? undefined : [finish])
    .add(NAMES.errorType.latest, fault?.kind)
    .add("tollgate.fault.code", codeOf(fault))
    .add("tollgate.attempt", call.n)
    .add("tollgate.hedge", hedgeResult(call))
    .add("tollgate.provider", call.provider)
    .add("tollgate.credential", call.credential)
    .add("tollgate.lane", call.lane)
    .add("tollgate.state", call.state);
}

function measures(
  { attributes }: Items,
  { usage, costNano }: RequestRecordCall,
  names: SpanNames,
): void {
  attributes
    .each(names.inputTokens, readTokens(usage))
    .each(names.outputTokens, writtenTokens(usage))
    .each(names.cacheRead, usage.cache_read)
    .each(names.cacheWrite, cacheWrites(usage))
    .each(names.reasoning, usage.reasoning)
    .each(names.audioInput, usage.audio_in)
    .each(names.audioOutput, usage.audio_out)
    .each(names.imageInput, usage.image_in)
    .each(names.imageOutput, usage.image_out)
    .add("tollgate.cost.usd", costNano === null ? undefined : usd(costNano));
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
