import { wallClock } from "../../lib/wall-clock.ts";
import type { CallRecord } from "../../plugin/call.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { Fault } from "../../model/error.ts";
import type {
  RequestRecord,
  RequestRecordCall,
  RequestRecordPassedOver,
  RequestTrace,
} from "../../plugin/observer.ts";
import type { HeardRequest } from "../generation.ts";
import type { ExchangeState, HostExchange } from "../exchange.ts";
import { spanOfCall } from "../trace.ts";
import { errnoOf } from "../upstream/errno.ts";
import { requestOutcome } from "./request-outcome.ts";

const NO_LABELS = Object.freeze({});
const NO_LOSSES = Object.freeze({});
/** A route may lead to hundreds. */
const MOST_PASSED = 32;
/** What may be kept of an id that a client makes: words on one line, and none that a log would have to break. */
const CLIENT_ID = /^[!-~]{1,128}$/;

/** What observers are told of a request: plain data, and no word of a client or a provider. */
export function seenOf(x: HostExchange, outcome: Outcome): HeardRequest {
  const inner = x["~"];
  const last = outcome.calls.at(-1);
  return {
    at: wallClock(),
    id: x.id,
    clientRequestId: clientRequestId(inner),
    worker: 0,
    generation: inner.gen.number,
    outcome: requestOutcome(outcome, inner.gone),
    frontend: x.frontend,
    protocol: x.protocol,
    kind: x.kind,
    op: x.op,
    name: x.name,
    method: x.method,
    route: inner.path,
    model: x.model,
    alias: inner.resolution?.alias,
    served: last && served(last) ? last.candidate.id : undefined,
    pinned: inner.received?.pinned !== undefined,
    hooks: inner.hooks,
    passedOver: passedOver(inner),
    stream: x.stream,
    lane: outcome.lane,
    status: outcome.status,
    fault: without(outcome.fault),
    finish: outcome.finish,
    cached: outcome.cached,
    key: x.identity?.id,
    account: inner.branch?.path,
    labels: labelsOf(x),
    privacy: x.privacy,
    receipt: inner.promised,
    client: x.address || undefined,
    losses: outcome.losses.length,
    lossCodes: byCode(outcome.losses),
    bytesIn: inner.bytesIn,
    bytesOut: outcome.bytesOut,
    ms: outcome.ms,
    contentMs: last?.ms.content === undefined ? undefined : last.startMs + last.ms.content,
    trace: x.trace,
    ownMs: ownOf(x),
    calls: outcome.calls.map((call) => callOf(call, x.trace)),
  };
}

function clientRequestId({ req }: ExchangeState): string | undefined {
  const said = req.headers["x-request-id"];
  return typeof said === "string" && CLIENT_ID.test(said) ? said : undefined;
}

/** What was made by a hook, or broke off before a word of it left, no model has answered. */
const served = ({ state, fault, ms }: CallRecord): boolean =>
  state !== "void" && (!fault || ms.content !== undefined);

function passedOver({ out, rested }: ExchangeState): RequestRecord["passedOver"] {
  if (out.length === 0 && !rested) return undefined;
  const all: RequestRecordPassedOver[] = [];
  for (const { candidate, by, code } of out.slice(0, MOST_PASSED))
    all.push({ candidate: candidate.id, credential: candidate.credential, by, code });
  for (const { candidate, why } of rested?.slice(0, MOST_PASSED - all.length) ?? [])
    all.push({ candidate: candidate.id, credential: candidate.credential, by: "rest", code: why });
  return all;
}

function byCode(losses: Outcome["losses"]): RequestRecord["lossCodes"] {
  if (losses.length === 0) return NO_LOSSES;
  const counts = new Map<string, number>();
  for (const { code } of losses) counts.set(code, (counts.get(code) ?? 0) + 1);
  return Object.fromEntries(counts);
}

/** The labels of its key, those that hooks have set, and over them what the ledger says. */
function labelsOf(x: HostExchange): RequestRecord["labels"] {
  const { labels, rowLabels } = x["~"];
  const own = x.identity?.labels;
  if (!labels && !rowLabels) return own ?? NO_LABELS;
  return { ...labels, ...own, ...rowLabels };
}

const callOf = (
  { n, hedge, startMs, candidate, state, usage, costNano, fault, ms }: CallRecord,
  trace: RequestTrace,
): RequestRecordCall => ({
  n,
  ...(hedge && { hedge }),
  startMs,
  spanId: spanOfCall(trace, n),
  provider: candidate.provider,
  model: candidate.model,
  credential: candidate.credential,
  protocol: candidate.protocol,
  lane: candidate.lane,
  state,
  usage,
  costNano,
  fault: without(fault),
  ms,
});

const without = (fault: Fault | undefined): RequestRecord["fault"] =>
  fault && { kind: fault.kind, code: fault.code ?? undefined, errno: errnoOf(fault) };

/** To the microsecond. A provider that is read on after its client has left may have been waited for longer than the request was. */
function ownOf(x: HostExchange): number {
  const { started, awayMs } = x["~"];
  return Math.max(0, Math.round((performance.now() - started - awayMs) * 1_000) / 1_000);
}
