import { wallClock } from "../../lib/time/wall-clock.ts";
import type { CallRecord } from "../../plugin/call.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { Fault } from "../../model/error.ts";
import type {
  RequestRecord,
  RequestRecordCall,
  RequestRecordSkippedCandidate,
  RequestTrace,
} from "../../plugin/observer.ts";
import type { ObservedRequest } from "../generation.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { ConnectionState } from "../exchange/exchange-state.ts";
import type { RoutingState } from "../routing/resolution.ts";
import { callSpanId } from "../exchange/trace.ts";
import { errnoOf } from "../faults/connection-errors.ts";
import { outcomeOfRequest } from "./request-outcome.ts";

const NO_LABELS = Object.freeze({});
const NO_LOSSES = Object.freeze({});
/** Maximum number of skipped candidates in a record. A route may have hundreds of candidates. */
const MAX_SKIPPED_CANDIDATES = 32;
/**
 * Matches request IDs from clients that may be recorded: printable ASCII without spaces, up to 128
 * characters. Log lines need no escaping for them.
 */
const CLIENT_ID = /^[!-~]{1,128}$/;

/**
 * Creates the record of a request for observers. It is plain data and contains no text from clients
 * or providers.
 */
export function createRequestRecord(x: HostExchange, outcome: Outcome): ObservedRequest {
  const state = x.state;
  const last = outcome.calls.at(-1);
  return {
    at: wallClock(),
    id: x.id,
    clientRequestId: clientRequestId(state.connection),
    worker: 0,
    generation: state.gen.number,
    outcome: outcomeOfRequest(outcome, state.connection.isDisconnected),
    frontend: x.frontend,
    protocol: x.protocol,
    operation: x.operation,
    actionType: x.actionType,
    action: x.action,
    method: x.method,
    route: state.routePath,
    model: x.model,
    alias: state.routing.resolution?.alias,
    served: last && wasServed(last) ? last.candidate.id : undefined,
    isPinned: state.body.received?.pinnedTarget !== undefined,
    hooks: state.outcome.hookActivity,
    skippedCandidates: collectSkippedCandidates(state.routing),
    stream: x.stream,
    mode: outcome.mode,
    status: outcome.status,
    fault: withoutMessage(outcome.fault),
    finish: outcome.finish,
    cached: outcome.cached,
    key: x.identity?.id,
    account: state.admission.account?.path,
    labels: mergeLabels(x),
    privacy: x.privacy,
    zdrReceipt: state.calls.zdrReceipt,
    client: x.address || undefined,
    losses: outcome.losses.length,
    lossCodes: countByCode(outcome.losses),
    bytesIn: state.connection.bytesIn,
    bytesOut: outcome.bytesOut,
    ms: outcome.ms,
    firstTokenMs: last?.ms.firstToken === undefined ? undefined : last.startMs + last.ms.firstToken,
    trace: x.trace,
    overheadMs: overheadMsOf(x),
    calls: outcome.calls.map((call) => toCallRecord(call, x.trace)),
  };
}

function clientRequestId({ req }: ConnectionState): string | undefined {
  const said = req.headers["x-request-id"];
  return typeof said === "string" && CLIENT_ID.test(said) ? said : undefined;
}

/**
 * Whether a model served the call. Responses that a hook made, and responses that were truncated
 * before any content was sent, do not count.
 */
const wasServed = ({ state, fault, ms }: CallRecord): boolean =>
  state !== "void" && (!fault || ms.firstToken !== undefined);

function collectSkippedCandidates({
  excluded,
  coolingDown,
}: RoutingState): RequestRecord["skippedCandidates"] {
  if (excluded.length === 0 && !coolingDown) return undefined;
  const all: RequestRecordSkippedCandidate[] = [];
  for (const { candidate, by, code } of excluded.slice(0, MAX_SKIPPED_CANDIDATES))
    all.push({ candidate: candidate.id, credential: candidate.credential, by, code });
  for (const { candidate, reason } of coolingDown?.slice(0, MAX_SKIPPED_CANDIDATES - all.length) ??
    [])
    all.push({
      candidate: candidate.id,
      credential: candidate.credential,
      by: "cooldown",
      code: reason,
    });
  return all;
}

function countByCode(losses: Outcome["losses"]): RequestRecord["lossCodes"] {
  if (losses.length === 0) return NO_LOSSES;
  const counts = new Map<string, number>();
  for (const { code } of losses) counts.set(code, (counts.get(code) ?? 0) + 1);
  return Object.fromEntries(counts);
}

/**
 * Merges labels: those of the key, those of hooks, and those of the ledger, which take precedence.
 */
function mergeLabels(x: HostExchange): RequestRecord["labels"] {
  const { labels, ledgerLabels } = x.state.billing;
  const own = x.identity?.labels;
  if (!labels && !ledgerLabels) return own ?? NO_LABELS;
  return { ...labels, ...own, ...ledgerLabels };
}

const toCallRecord = (
  { n, hedge, startMs, candidate, state, usage, costNano, fault, ms }: CallRecord,
  trace: RequestTrace,
): RequestRecordCall => ({
  n,
  ...(hedge && { hedge }),
  startMs,
  spanId: callSpanId(trace, n),
  provider: candidate.provider,
  model: candidate.model,
  credential: candidate.credential,
  protocol: candidate.protocol,
  mode: candidate.mode,
  state,
  usage,
  costNano,
  fault: withoutMessage(fault),
  ms,
});

const withoutMessage = (fault: Fault | undefined): RequestRecord["fault"] =>
  fault && { kind: fault.kind, code: fault.code ?? undefined, errno: errnoOf(fault) };

/**
 * Returns the gateway's own time in milliseconds, rounded to microseconds. If a provider's response
 * was read after the client disconnected, the external wait can exceed the request's duration.
 */
function overheadMsOf(x: HostExchange): number {
  const { startedAt, externalWaitMs } = x.state.connection;
  return Math.max(0, Math.round((performance.now() - startedAt - externalWaitMs) * 1_000) / 1_000);
}
