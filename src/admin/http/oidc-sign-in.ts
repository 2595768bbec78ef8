// Implements login with the operators' identity provider. Only the browser stores the secret of a
// sign-in, in a separate cookie. The gateway therefore stores nothing for logins that have begun.
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AdminConfig, OidcConfig } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import { originalQueryTextOf } from "../../lib/query-secrets.ts";
import { fail, getFault } from "../../model/error.ts";
import type { ProviderClient } from "../../plugin/call.ts";
import { OidcClient } from "../../plugin/sign-in/oidc-client.ts";
import { type Principal, OIDC_PATH } from "../../runtime/access/principal.ts";
import { oidcCredentialId } from "../../runtime/access/admin-principals.ts";
import { readTokenCookie } from "../../runtime/access/session-cookie.ts";

export const CALLBACK = `${OIDC_PATH}/callback`;
/** Time to log in at the provider, in seconds. */
const MAX_AGE_S = 600;
const MAX_CLAIM_LENGTH = 256;

export interface OidcSignInOptions {
  /** Returns the admin section of the current config. */
  readonly adminConfig: () => AdminConfig | undefined;
  readonly fetch: (config: OidcConfig) => ProviderClient["fetch"];
  readonly log: Pick<Log, "warn">;
}

export class OidcSignIn {
  readonly #options: OidcSignInOptions;
  #current: { readonly config: OidcConfig; readonly provider: OidcClient } | undefined;

  constructor(options: OidcSignInOptions) {
    this.#options = options;
  }

  /**
   * Returns the URL at which the browser logs in, and the cookie that identifies it when it
   * returns.
   */
  async start(
    req: IncomingMessage,
    secure: boolean,
  ): Promise<{ location: string; cookie?: string }> {
    const { provider } = this.#currentProvider();
    const own = new URL(provider.settings.callbackUrl);
    // A cookie is valid for one host name. A request with another host name is redirected to the
    // configured one and starts again.
    if (req.headers.host?.toLowerCase() !== own.host)
      return { location: `${own.origin}${OIDC_PATH}` };
    const flowToken = randomBytes(32).toString("base64url");
    const location = await this.#withLoggedErrors(() => provider.authorizationUrl(flowToken));
    return { location, cookie: formatFlowCookie(flowToken, secure) };
  }

  /** Returns the principal of a browser that has returned from the provider. */
  async finish(req: IncomingMessage, secure: boolean): Promise<Principal> {
    const { config, provider } = this.#currentProvider();
    const { claims } = await this.#withLoggedErrors(() =>
      provider.finish({
        query: new URLSearchParams(originalQueryTextOf(req)),
        flowToken: readTokenCookie(req, cookieNameOf(secure)),
      }),
    );
    return principalOfClaims(claims, config);
  }

  /** Whether gateway.yaml configures an identity provider. */
  get isConfigured(): boolean {
    return this.#options.adminConfig()?.oidc !== undefined;
  }

  #currentProvider() {
    const config =
      this.#options.adminConfig()?.oidc ??
      fail("not_found", "No identity provider is configured. Set admin.oidc in gateway.yaml.", {
        code: "no_oidc",
      });
    // A reload creates a new config object.
    if (this.#current?.config !== config)
      this.#current = { config, provider: new OidcClient(config, this.#options.fetch(config)) };
    return this.#current;
  }

  /** Logs the details of an error, and throws a short message for the user. */
  async #withLoggedErrors<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (getFault(error)?.code === "oidc_refused") throw error;
      this.#options.log.warn({ err: error }, "identity provider sign-in failed");
      const refused = getFault(error) === undefined;
      return refused
        ? rejectSignIn("Invalid response from the identity provider. See the gateway log.")
        : fail("upstream", "The identity provider is not reachable.", {
            code: "oidc_unreachable",
          });
    }
  }
}

const rejectSignIn = (why: string): never => fail("unauthenticated", why, { code: "oidc_refused" });

type IdClaims = Readonly<Record<string, unknown>>;

/**
 * Returns a claim of the ID token. An unverified email address is treated as missing, because any
 * person can enter any address.
 */
function verifiedClaimOf(claims: IdClaims, name: string): unknown {
  if (name !== "email") return claims[name];
  const verified = claims["email_verified"];
  return verified === true || verified === "true" ? claims["email"] : undefined;
}

/**
 * Returns the principal of an ID token. Its role is the first role in gateway.yaml whose group is
 * in the token.
 */
export function principalOfClaims(
  claims: IdClaims,
  { issuer, roles, groupsClaim: claim, nameClaim }: OidcConfig,
): Principal {
  const subject = claims["sub"];
  const called = verifiedClaimOf(claims, nameClaim);
  const text = (value: unknown): value is string =>
    typeof value === "string" && value.length <= MAX_CLAIM_LENGTH && /^[\x21-\x7e]+$/.test(value);
  if (!text(subject)) return rejectSignIn("Invalid subject in the ID token.");
  const groups = [verifiedClaimOf(claims, claim)].flat();
  const role = roles.find(({ group }) => groups.includes(group));
  if (!role)
    return fail("forbidden", "None of your groups has access to this gateway.", {
      code: "no_role",
    });
  return {
    name: `admin:oidc:${text(called) ? called : subject}`,
    role: role.role,
    account: role.account,
    credentialId: oidcCredentialId(issuer, subject),
    group: role.group,
  };
}

const cookieNameOf = (secure: boolean): string =>
  secure ? "__Host-tollgate-oidc" : "tollgate-oidc";

/**
 * Returns the `Set-Cookie` value of the login cookie. With `SameSite=Lax`, the browser sends it
 * when the provider redirects back.
 */
export const formatFlowCookie = (word: string | undefined, secure: boolean): string =>
  [
    `${cookieNameOf(secure)}=${word ?? ""}`,
    "Path=/",
    "HttpOnly",
    "SameSite=Lax",
    `Max-Age=${word === undefined ? 0 : MAX_AGE_S}`,
    ...(secure ? ["Secure"] : []),
  ].join("; ");
