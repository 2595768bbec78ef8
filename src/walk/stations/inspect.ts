import type { HostExchange } from "../exchange.ts";

/** What will be asked, shown to the inspect hooks: once, after the last word on it. They refuse, or change nothing. */
export function inspect(x: HostExchange): Promise<void> | undefined {
  const hooks = x["~"].frontend.chain.inspect;
  return hooks.length > 0 && x.op !== "relay" ? inspected(x) : undefined;
}

async function inspected(x: HostExchange): Promise<void> {
  const { frontend, rewritten } = x["~"];
  for (const hook of frontend.chain.inspect) {
    if (!hook.applies(x.model, undefined)) continue;
    const waiting = hook.run(rewritten ?? x.request, x);
    if (waiting) await waiting;
  }
}
