import { ERRORS } from "../../model/error.ts";
import { isPromise } from "../../lib/promise.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { HostExchange } from "../exchange.ts";
import { isUnasked } from "../hook-failures.ts";
import { noteworthy, report } from "./request-log.ts";
import { seenOf } from "./request-record.ts";

/** After the walk, whatever happened inside: there is one outcome, told once to every settle hook. A promise only where one waits. */
export function settle(x: HostExchange): void | Promise<void> {
  const inner = x["~"];
  const hooks = inner.frontend.chain.settle;
  const { seen } = inner.gen;
  if (hooks.length > 0) return hooked(x, outcomeOf(x), 0);
  if (seen || noteworthy(x)) tell(x, outcomeOf(x));
}

/** One after the other. `from`: the one that is next. */
function hooked(x: HostExchange, outcome: Outcome, from: number): void | Promise<void> {
  const inner = x["~"];
  const hooks = inner.frontend.chain.settle;
  for (let at = from; at < hooks.length; at++) {
    const hook = hooks[at]!;
    if (!hook.applies(x.model || undefined, undefined)) continue;
    const failed = (err: unknown) => {
      if (!isUnasked(err))
        inner.gen.log.error({ request: x.id, plugin: hook.id, err }, "a settle hook failed");
    };
    try {
      const waiting = hook.run(x, outcome);
      if (isPromise(waiting)) return waiting.catch(failed).then(() => hooked(x, outcome, at + 1));
    } catch (err) {
      failed(err);
    }
  }
  tell(x, outcome);
}

function tell(x: HostExchange, outcome: Outcome): void {
  x["~"].gen.seen?.(seenOf(x, outcome));
  if (noteworthy(x)) report(x, outcome);
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
  return {
    status: inner.gone && !inner.res.headersSent ? ERRORS.canceled[0] : inner.res.statusCode,
    lane: inner.last?.lane ?? null,
    calls: inner.calls,
    cached: inner.cached,
    finish: inner.finish,
    fault: inner.fault,
    losses: inner.last?.losses ?? [],
    bytesOut: inner.bytesOut,
    ms: Math.round(performance.now() - inner.started),
  };
}
