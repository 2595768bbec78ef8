import { queryOf } from "../../lib/query-secrets.ts";
import { fail } from "../../model/error.ts";
import type { HostExchange } from "../exchange.ts";
import { mayAsk } from "../accounts.ts";
import { keepPrivate } from "../candidates/privacy.ts";

/**
 * Which key it is, what it may do and what may be kept of it: decided on the head, before a byte of the body is read. A promise
 * only where a hook has to wait.
 */
export function admit(x: HostExchange): void | Promise<void> {
  const { frontend, req } = x["~"];
  const secret = frontend.secret(req.headers, queryOf(req));
  const hooks = frontend.chain.admit;
  for (let i = 0; i < hooks.length; i++) {
    const waiting = hooks[i]!.run(x, secret);
    if (waiting) return waited(x, secret, waiting, i + 1);
  }
  return admitted(x);
}

async function waited(
  x: HostExchange,
  secret: string | undefined,
  waiting: Promise<void>,
  from: number,
): Promise<void> {
  await waiting;
  for (const hook of x["~"].frontend.chain.admit.slice(from)) await hook.run(x, secret);
  admitted(x);
}

function admitted(x: HostExchange): void {
  const who = x.identity;
  if (!who)
    return fail("unauthenticated", "No key was accepted. Send a valid key.", {
      code: "invalid_api_key",
    });
  mayAsk(who, x.frontend);
  for (const limits of [who.limits, x["~"].branch?.limits])
    if (limits)
      for (const { unit, scope, max } of limits)
        if (unit === "concurrent") x.occupy(scope, Number(max));
  keepPrivate(x);
}
