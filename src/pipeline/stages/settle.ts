import { ERRORS, type Fault } from "../../model/error.ts";
import { isPromise } from "../../lib/is-promise.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { isQuarantineError } from "../hooks/hook-guard.ts";
import { runSequentially } from "../hooks/hook-runner.ts";
import type { CallRecord } from "../../plugin/call.ts";
import type {
  RequestOutcome,
  RequestRecord,
  RequestRecordCall,
  RequestRecordSkippedCandidate,
} from "../../plugin/observer.ts";
import type { RequestTrace } from "../../model/request-trace.ts";
import { OVERLOADED_CODE } from "../admission/admission-queue.ts";
import { errnoOf } from "../faults/fault-source.ts";
import { outcomeOfRequest } from "./request-outcome.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { ObservedRequest } from "../generation.ts";
import type { ConnectionState } from "../exchange/exchange-state.ts";
import type { RoutingState } from "../routing/resolution.ts";
import { callSpanId } from "../exchange/trace.ts";

/**
 * Ends a request after the pipeline: creates its outcome and passes it once to every settle hook.
 * Returns a promise only if a hook waits.
 */
export function settle(x: HostExchange): void | Promise<void> {
  const { frontend, gen } = x.state;
  const hooks = frontend.hooks.lists.settle;
  if (hooks.length === 0) {
    if (gen.reportRequest || shouldLog(x)) report(x, createOutcome(x));
    return undefined;
  }
  const outcome = createOutcome(x);
  const settling = runSequentially(hooks, x.model || undefined, (hook) => {
    const failed = (err: unknown) => {
      if (!isQuarantineError(err))
        gen.log.error({ request: x.id, plugin: hook.id, err }, "settle hook failed");
    };
    try {
      const waiting = hook.run(x, outcome);
      return isPromise(waiting) ? waiting.catch(failed) : undefined;
    } catch (err) {
      return failed(err);
    }
  });
  return isPromise(settling) ? settling.then(() => report(x, outcome)) : report(x, outcome);
}

function report(x: HostExchange, outcome: Outcome): void {
  x.state.gen.reportRequest?.(createRequestRecord(x, outcome));
  if (shouldLog(x)) logRequest(x, outcome);
}

/**
 * Sends the error. If the error cannot be written, the connection is closed, and hooks and
 * observers are still notified.
 */
export function rejectSafely(
  x: HostExchange,
  problem: unknown,
  reject: (x: HostExchange, problem: unknown) => void,
): void {
  try {
    reject(x, problem);
  } catch (err) {
    x.state.gen.log.error({ request: x.id, err }, "error encoding failed");
    x.state.connection.res.destroy();
  }
}

function createOutcome(x: HostExchange): Outcome {
  const { connection, calls, billing, outcome } = x.state;
  const { res } = connection;
  return {
    status: connection.isDisconnected && !res.headersSent ? ERRORS.canceled[0] : res.statusCode,
    mode: calls.last?.mode ?? null,
    calls: billing.records,
    cached: outcome.cached,
    finish: outcome.finish,
    fault: outcome.fault,
    losses: calls.last?.losses ?? [],
    bytesOut: connection.bytesOut,
    ms: Math.round(performance.now() - connection.startedAt),
  };
}

// Writes one line to the gateway's log for a request that failed, was slow, or was answered by
// another candidate. The line never contains a body or a secret.

/** Whether the request is logged. Checked before anything is created for the log line. */
function shouldLog(x: HostExchange): boolean {
  const { fault } = x.state.outcome;
  const { isDisconnected } = x.state.connection;
  const calls = x.state.billing.records.length;
  // A flood of rejections is logged separately.
  if (fault?.code === OVERLOADED_CODE && calls === 0) return false;
  return fault !== undefined || isDisconnected || calls > 1 || isSlow(x);
}

const isSlow = (x: HostExchange): boolean => {
  const { billing, gen } = x.state;
  return (billing.records.at(-1)?.ms.headers ?? 0) > gen.slowRequestMs;
};

function logRequest(x: HostExchange, outcome: Outcome): void {
  const ended = outcomeOfRequest(outcome, x.state.connection.isDisconnected);
  if (ended === "ok") return logSuccess(x, outcome);
  const fields = { ...fieldsOf(x, outcome), outcome: ended };
  const { log, logThrottle } = x.state.gen;
  const [level, words] = levelAndMessage(ended, outcome);
  if (ended !== "refused" && ended !== "client_error") return log[level](fields, words);
  // A rejected client may retry many times. The first rejection is logged immediately, then one
  // line per minute with the number of rejections.
  const who = x.identity?.id ?? x.address;
  const { code, kind } = outcome.fault ?? {};
  return logThrottle.log(`${x.frontend} ${code ?? kind ?? outcome.status} ${who}`, (times) =>
    log[level](times === 1 ? fields : { ...fields, times }, words),
  );
}

function levelAndMessage(
  ended: Exclude<RequestOutcome, "ok">,
  { fault, status }: Outcome,
): ["info" | "warn" | "error", string] {
  if (ended === "canceled")
    return ["info", fault?.kind === "timeout" ? "client timeout reached" : "client disconnected"];
  const ours = ended === "upstream_error" || ended === "error";
  // The headers, which were already sent, reported success.
  if (status < 400) return [ours ? "error" : "warn", "response aborted"];
  return ours ? ["error", "request failed"] : ["warn", "request refused"];
}

function logSuccess(x: HostExchange, outcome: Outcome): void {
  if (isSlow(x)) x.state.gen.log.warn(fieldsOf(x, outcome), "slow request");
  const [failed] = outcome.calls;
  const last = outcome.calls.at(-1);
  if (failed?.fault && last && last !== failed) logFallback(x, outcome, failed, last);
}

function logFallback(x: HostExchange, outcome: Outcome, from: CallRecord, to: CallRecord): void {
  const { log, logThrottle } = x.state.gen;
  const { kind, code } = from.fault!;
  const fields = {
    request: x.id,
    model: x.model,
    from: candidateName(from),
    to: candidateName(to),
    kind,
    code,
    errno: errnoOf(from.fault),
    calls: outcome.calls.length,
    ms: outcome.ms,
  };
  const words = fields.from === fields.to ? "succeeded after retry" : "succeeded after fallback";
  logThrottle.log(`${fields.from} ${fields.to} ${kind}`, (times) =>
    log.warn(times === 1 ? fields : { ...fields, times }, words),
  );
}

/** Returns the candidate's ID, with the name of the credential if the provider has several. */
const candidateName = ({ candidate: { id, credential } }: CallRecord): string =>
  credential === "default" ? id : `${id} (${credential})`;

function fieldsOf(x: HostExchange, outcome: Outcome) {
  const last = outcome.calls.at(-1);
  const { fault } = outcome;
  return {
    request: x.id,
    frontend: x.frontend,
    key: x.identity?.id,
    model: x.model || undefined,
    provider: last?.candidate.provider,
    credential: last?.candidate.credential,
    mode: outcome.mode,
    status: outcome.status,
    kind: fault?.kind,
    code: fault?.code,
    errno: errnoOf(fault),
    calls: outcome.calls.length,
    ms: outcome.ms,
    headers_ms: last?.ms.headers,
    message:
      fault && isGatewayMessage(fault, outcome) ? x.state.gen.mask(fault.message) : undefined,
  };
}

/** Kinds of failure whose messages the gateway itself writes. */
const GATEWAY_MESSAGE_KINDS: readonly Fault["kind"][] = [
  "unauthenticated",
  "forbidden",
  "privacy",
  "quota",
  "rate_limited",
  "too_large",
  "unavailable",
];

/**
 * Whether the gateway itself wrote the message. A provider's error, and an error about a body, may
 * quote the client's content. Such messages are sent to the client and never logged.
 */
const isGatewayMessage = (fault: Fault, { calls }: Outcome): boolean =>
  calls.length === 0 && GATEWAY_MESSAGE_KINDS.includes(fault.kind);

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
function createRequestRecord(x: HostExchange, outcome: Outcome): ObservedRequest {
  const state = x.state;
  const last = outcome.calls.at(-1);
  return {
    at: wallClock(),
    id: x.id,
    clientRequestId: clientRequestId(state.connection),
    session: x.session?.id,
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
    rpc: state.outcome.rpc,
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
  const requestId = req.headers["x-request-id"];
  return typeof requestId === "string" && CLIENT_ID.test(requestId) ? requestId : undefined;
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

/** Merges labels: labels of the key, of hooks, and of the ledger, which take precedence. */
function mergeLabels(x: HostExchange): RequestRecord["labels"] {
  const { labels, ledgerLabels } = x.state.billing;
  const own = x.identity?.labels;
  if (!labels && !ledgerLabels) return own ?? NO_LABELS;
  return { ...labels, ...own, ...ledgerLabels };
}

const toCallRecord = (
  { n, hedge, startMs, candidate, state, usage, costNano, fault, transport, ms }: CallRecord,
  trace: RequestTrace,
): RequestRecordCall => ({
  n,
  ...(hedge && { hedge }),
  ...(transport && { transport }),
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
