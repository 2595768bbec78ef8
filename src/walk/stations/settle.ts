import { ERRORS, type Fault } from "../../model/error.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { HostExchange } from "../exchange.ts";
import { seenOf } from "./request-record.ts";

/** After the walk, whatever happened inside: there is one outcome, told once to every settle hook. A promise only where one waits. */
export function settle(x: HostExchange): void | Promise<void> {
  const inner = x["~"];
  const hooks = inner.frontend.chain.settle;
  const { seen } = inner.gen;
  if (hooks.length > 0) return hooked(x, outcomeOf(x));
  if (inner.fault || seen || slow(x)) tell(x, outcomeOf(x));
}

async function hooked(x: HostExchange, outcome: Outcome): Promise<void> {
  const inner = x["~"];
  for (const hook of inner.frontend.chain.settle) {
    if (!hook.applies(x.model || undefined, undefined)) continue;
    try {
      const waiting = hook.run(x, outcome);
      if (waiting) await waiting;
    } catch (err) {
      inner.gen.log.error({ request: x.id, plugin: hook.id, err }, "a settle hook failed");
    }
  }
  tell(x, outcome);
}

function tell(x: HostExchange, outcome: Outcome): void {
  x["~"].gen.seen?.(seenOf(x, outcome));
  report(x, outcome);
}

/** Even a refusal that cannot be written is an end: the connection is closed, and hooks and observers hear of it. */
export function refused(
  x: HostExchange,
  problem: unknown,
  refuse: (x: HostExchange, problem: unknown) => void,
): void {
  try {
    refuse(x, problem);
  } catch (err) {
    x["~"].gen.log.error({ request: x.id, err }, "an error could not be written");
    x["~"].res.destroy();
  }
}

function outcomeOf(x: HostExchange): Outcome {
  const inner = x["~"];
  const fault = inner.fault;
  return {
    status: inner.gone && !inner.res.headersSent ? ERRORS.canceled[0] : inner.res.statusCode,
    lane: inner.last?.lane ?? null,
    calls: inner.calls,
    cached: inner.cached,
    ...(inner.finish !== undefined && { finish: inner.finish }),
    ...(fault && { fault }),
    losses: inner.last?.losses ?? [],
    bytesOut: inner.bytesOut,
    ms: Math.round(performance.now() - inner.started),
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

const slow = (x: HostExchange): boolean => {
  const { calls, gen } = x["~"];
  return (calls.at(-1)?.ms.head ?? 0) > gen.slowMs;
};

/** One line for each failed or slow request; never a body, never a secret. */
function report(x: HostExchange, outcome: Outcome): void {
  const { gen } = x["~"];
  const last = outcome.calls.at(-1);
  if (!outcome.fault && !slow(x)) return;
  const fields = {
    request: x.id,
    frontend: x.frontend,
    key: x.identity?.id,
    model: x.model || undefined,
    provider: last?.candidate.provider,
    credential: last?.candidate.credential,
    lane: outcome.lane,
    status: outcome.status,
    kind: outcome.fault?.kind,
    code: outcome.fault?.code,
    calls: outcome.calls.length,
    ms: outcome.ms,
    head_ms: last?.ms.head,
    message:
      outcome.fault && ours(outcome.fault, outcome) ? gen.mask(outcome.fault.message) : undefined,
  };
  if (outcome.fault && outcome.status >= 500) gen.log.error(fields, "request failed");
  else if (outcome.fault)
    gen.log.warn(fields, outcome.status === 499 ? "client went away" : "request refused");
  else gen.log.warn(fields, "slow request");
}
