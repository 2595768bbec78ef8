// Writes one line to the gateway's log for a request that an operator should know about: one that
// failed, was slow, or was answered by another candidate. The line never contains a body or a
// secret.
import type { Fault } from "../../model/error.ts";
import type { CallRecord } from "../../plugin/call.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { RequestOutcome } from "../../plugin/observer.ts";
import { OVERLOADED_CODE } from "../admission/admission-queue.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { errnoOf } from "../faults/connection-errors.ts";
import { outcomeOfRequest } from "./request-outcome.ts";

/** Whether the request is logged. Checked before anything is created for the log line. */
export function shouldLog(x: HostExchange): boolean {
  const { fault } = x.state.outcome;
  const { isDisconnected } = x.state.connection;
  const calls = x.state.billing.records.length;
  // A flood of rejections has a log line of its own.
  if (fault?.code === OVERLOADED_CODE && calls === 0) return false;
  return fault !== undefined || isDisconnected || calls > 1 || isSlow(x);
}

const isSlow = (x: HostExchange): boolean => {
  const { billing, gen } = x.state;
  return (billing.records.at(-1)?.ms.headers ?? 0) > gen.slowRequestMs;
};

export function logRequest(x: HostExchange, outcome: Outcome): void {
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

/** Returns the candidate's ID, with the credential if there may be several. */
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
