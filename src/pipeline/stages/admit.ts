import { isPromise } from "../../lib/is-promise.ts";
import { originalQueryOf } from "../../lib/query-secrets.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { fail } from "../../model/error.ts";
import type { ClientSecret } from "../../plugin/identity.ts";
import { ClientCredential } from "../exchange/client-credential.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { runSequentially } from "../hooks/hook-runner.ts";
import { readScopeHeaders } from "../scopes/scope-values.ts";
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
  return isPromise(hooks) ? hooks.then(() => checkAdmitted(x, secret)) : checkAdmitted(x, secret);
}

function checkAdmitted(x: HostExchange, secret: string | undefined): void {
  checkIdentity(x);
  const { gen, connection, admission } = x.state;
  // A WebSocket's requests repeat the headers of its handshake, so each would send the credential.
  if (gen.acceptsClientCredentials && !connection.lane && !x.session)
    admission.clientCredential = ClientCredential.take(connection.req, secret);
}

function checkIdentity(x: HostExchange): void {
  const who = x.identity;
  if (!who)
    return fail("unauthenticated", "Missing or invalid API key. Send a valid key.", {
      code: "invalid_api_key",
    });
  if (who.clientSecret) assertSecretAccepted(x, who.clientSecret);
  assertFrontendAllowed(who, x.frontend);
  if (!x.state.gen.scopes.isEmpty) readScopeHeaders(x);
  for (const limits of [who.limits, x.state.admission.account?.limits])
    if (limits)
      for (const { unit, scope, max } of limits)
        if (unit === "concurrent") x.acquireSlot(scope, Number(max));
  assertPrivacySupported(x);
}

/**
 * Throws if the route does not accept client secrets, or the secret has expired. An open connection
 * may continue after its secret has expired.
 */
function assertSecretAccepted(x: HostExchange, { expiresAt }: ClientSecret): void {
  if (x.session) return;
  if (!x.state.acceptsClientSecrets)
    fail("unauthenticated", `A client secret is not accepted at ${x.path}. Send an API key.`, {
      code: "client_secret_not_accepted",
    });
  if (expiresAt <= wallClock())
    fail("unauthenticated", "The client secret has expired. Create another one.", {
      code: "client_secret_expired",
    });
}
