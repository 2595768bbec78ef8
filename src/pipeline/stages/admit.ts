import { isPromise } from "../../lib/is-promise.ts";
import { originalQueryOf } from "../../lib/query-secrets.ts";
import { fail } from "../../model/error.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { runSequentially } from "../hooks/hook-runner.ts";
import { assertFrontendAllowed } from "../accounts/accounts.ts";
import { assertPrivacySupported } from "../privacy/zero-retention.ts";

/**
 * Admits a request: identifies its key, and determines its permissions and which of its data may be
 * retained. Runs on the headers, before a byte of the body is read. Returns a promise only if a
 * hook waits.
 */
export function admit(x: HostExchange): void | Promise<void> {
  const { frontend } = x.state;
  const { req } = x.state.connection;
  const secret = frontend.extractCredential(req.headers, originalQueryOf(req));
  const hooks = runSequentially(frontend.hooks.lists.admit, undefined, (hook) =>
    hook.run(x, secret),
  );
  return isPromise(hooks) ? hooks.then(() => checkIdentity(x)) : checkIdentity(x);
}

function checkIdentity(x: HostExchange): void {
  const who = x.identity;
  if (!who)
    return fail("unauthenticated", "Missing or invalid API key. Send a valid key.", {
      code: "invalid_api_key",
    });
  assertFrontendAllowed(who, x.frontend);
  for (const limits of [who.limits, x.state.admission.account?.limits])
    if (limits)
      for (const { unit, scope, max } of limits)
        if (unit === "concurrent") x.acquireSlot(scope, Number(max));
  assertPrivacySupported(x);
}
