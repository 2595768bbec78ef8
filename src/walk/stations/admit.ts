import { queryOf } from "../../lib/query-secrets.ts";
import { fail } from "../../model/error.ts";
import type { HostExchange } from "../exchange.ts";
import { keepPrivate } from "../candidates/privacy.ts";

/** Which key it is, what it may do and what may be kept of it: decided on the head, before a byte of the body is read. */
export async function admit(x: HostExchange): Promise<void> {
  const { frontend, req } = x["~"];
  const secret = frontend.secret(req.headers, queryOf(req));
  for (const hook of frontend.chain.admit) {
    const waiting = hook.run(x, secret);
    if (waiting) await waiting;
  }
  const who = x.identity;
  if (!who)
    return fail("unauthenticated", "No key was accepted. Send a valid key.", {
      code: "invalid_api_key",
    });
  if (who.frontends && !who.frontends.includes(x.frontend))
    fail(
      "forbidden",
      `This key may not use ${x.frontend}. It may use: ${who.frontends.join(", ")}.`,
      {
        code: "frontend_not_allowed",
      },
    );
  for (const limits of [who.limits, x["~"].branch?.limits])
    if (limits)
      for (const { unit, scope, max } of limits)
        if (unit === "concurrent") x.occupy(scope, Number(max));
  keepPrivate(x);
}
