import type { HostExchange } from "../exchange/exchange.ts";

/** What was asked, as the rewrite hooks would have it: once, before routing. Only their presence costs a decoding. */
export function rewrite(x: HostExchange): Promise<void> | undefined {
  const hooks = x["~"].frontend.hookChain.rewrite;
  return hooks.length > 0 && x.actionType !== "relay" ? runRewriteHooks(x) : undefined;
}

async function runRewriteHooks(x: HostExchange): Promise<void> {
  const state = x["~"];
  for (const hook of state.frontend.hookChain.rewrite)
    if (hook.appliesTo(x.model, undefined))
      state.rewrittenRequest = await hook.run(state.rewrittenRequest ?? x.request, x);
}
