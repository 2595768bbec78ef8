import { ERRORS } from "../../model/error.ts";
import { isPromise } from "../../lib/is-promise.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { isQuarantineError } from "../hooks/hook-guard.ts";
import { runSequentially } from "../hooks/hook-runner.ts";
import { shouldLog, logRequest } from "./request-log.ts";
import { createRequestRecord } from "./request-record.ts";

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
