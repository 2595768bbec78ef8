// A line in the gateway's log for what an operator should look at: a request that failed, one that was slow, one that only another
// candidate could answer. Never a body, never a secret.
import type { Fault } from "../../model/error.ts";
import type { CallRecord } from "../../plugin/call.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { RequestOutcome } from "../../plugin/observer.ts";
import { OVERLOADED } from "../bounds/gate.ts";
import type { HostExchange } from "../exchange.ts";
import { errnoOf } from "../upstream/errno.ts";
import { requestOutcome } from "./request-outcome.ts";

/** Whether there is anything to say, before anything is made for it. */
export function noteworthy(x: HostExchange): boolean {
  const { fault, gone, calls } = x["~"];
  // A flood of refusals has a line of its own.
  if (fault?.code === OVERLOADED && calls.length === 0) return false;
  return fault !== undefined || gone || calls.length > 1 || slow(x);
}

const slow = (x: HostExchange): boolean => {
  const { calls, gen } = x["~"];
  return (calls.at(-1)?.ms.head ?? 0) > gen.slowMs;
};

export function report(x: HostExchange, outcome: Outcome): void {
  const ended = requestOutcome(outcome, x["~"].gone);
  if (ended === "ok") return answered(x, outcome);
  const fields = { ...fieldsOf(x, outcome), outcome: ended };
  const { log, repeats } = x["~"].gen;
  const [level, words] = wordsFor(ended, outcome);
  if (ended !== "refused" && ended !== "client_error") return log[level](fields, words);
  // A client that is refused may try again and again: one line at once, then one per minute with the number of refusals.
  const who = x.identity?.id ?? x.address;
  const { code, kind } = outcome.fault ?? {};
  return repeats.say(`${x.frontend} ${code ?? kind ?? outcome.status} ${who}`, (times) =>
    log[level](times === 1 ? fields : { ...fields, times }, words),
  );
}

function wordsFor(
  ended: Exclude<RequestOutcome, "ok">,
  { fault, status }: Outcome,
): ["info" | "warn" | "error", string] {
  if (ended === "canceled")
    return ["info", fault?.kind === "timeout" ? "client waits no longer" : "client went away"];
  const ours = ended === "upstream_error" || ended === "error";
  // Its head said that all was well.
  if (status < 400) return [ours ? "error" : "warn", "answer broke off"];
  return ours ? ["error", "request failed"] : ["warn", "request refused"];
}

function answered(x: HostExchange, outcome: Outcome): void {
  if (slow(x)) x["~"].gen.log.warn(fieldsOf(x, outcome), "slow request");
  const [failed] = outcome.calls;
  const last = outcome.calls.at(-1);
  if (failed?.fault && last && last !== failed) fellBack(x, outcome, failed, last);
}

function fellBack(x: HostExchange, outcome: Outcome, from: CallRecord, to: CallRecord): void {
  const { log, repeats } = x["~"].gen;
  const { kind, code } = from.fault!;
  const fields = {
    request: x.id,
    model: x.model,
    from: nameOf(from),
    to: nameOf(to),
    kind,
    code,
    errno: errnoOf(from.fault),
    calls: outcome.calls.length,
    ms: outcome.ms,
  };
  const words =
    fields.from === fields.to ? "answered when asked again" : "answered by another candidate";
  repeats.say(`${fields.from} ${fields.to} ${kind}`, (times) =>
    log.warn(times === 1 ? fields : { ...fields, times }, words),
  );
}

/** With its credential where there may be another one. */
const nameOf = ({ candidate: { id, credential } }: CallRecord): string =>
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
    lane: outcome.lane,
    status: outcome.status,
    kind: fault?.kind,
    code: fault?.code,
    errno: errnoOf(fault),
    calls: outcome.calls.length,
    ms: outcome.ms,
    head_ms: last?.ms.head,
    message: fault && ours(fault, outcome) ? x["~"].gen.mask(fault.message) : undefined,
  };
}

/** Kinds of failure whose words are the gateway's own. */
const OURS: readonly Fault["kind"][] = [
  "unauthenticated",
  "forbidden",
  "privacy",
  "quota",
  "rate_limited",
  "too_large",
  "unavailable",
];

/** A provider's error, and an error about a body, may quote what the client sent. Such words go to the client and into no log. */
const ours = (fault: Fault, { calls }: Outcome): boolean =>
  calls.length === 0 && OURS.includes(fault.kind);
