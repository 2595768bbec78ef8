import { isPromise } from "../../lib/is-promise.ts";
import type { HostExchange } from "../exchange/exchange.ts";

/**
 * What will be asked, shown to the inspect hooks: once, after the last word on it. They refuse, or change nothing. A promise only where
 * one of them waits, and mostly that one's own. `from`: the hook that is next.
 */
export function inspect(x: HostExchange, from = 0): Promise<void> | undefined {
  const { frontend, rewrittenRequest } = x["~"];
  const hooks = frontend.hookChain.inspect;
  if (hooks.length === 0 || x.actionType === "relay") return undefined;
  for (let at = from; at < hooks.length; at++) {
    const hook = hooks[at]!;
    if (!hook.appliesTo(x.model, undefined)) continue;
    const waiting = hook.run(rewrittenRequest ?? x.request, x);
    if (!isPromise(waiting)) continue;
    return at + 1 < hooks.length ? waiting.then(() => inspect(x, at + 1)) : waiting;
  }
  return undefined;
}
