import type { HostExchange } from "../exchange.ts";

/** What was asked, as the rewrite hooks would have it: once, before routing. Only their presence costs a decoding. */
export function rewrite(x: HostExchange): Promise<void> | undefined {
  const hooks = x["~"].frontend.chain.rewrite;
  return hooks.length > 0 && x.op !== "relay" ? rewritten(x) : undefined;
}

async function rewritten(x: HostExchange): Promise<void> {
  const inner = x["~"];
  for (const hook of inner.frontend.chain.rewrite)
    if (hook.applies(x.model, undefined))
      inner.rewritten = await hook.run(inner.rewritten ?? x.request, x);
}
