// Implements login with the operators' identity provider: the OpenID Connect code flow with PKCE,
// state, and nonce. All three are derived from one random token that only the browser stores, in a
// separate cookie. So the gateway stores nothing for logins that have begun.
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AdminConfig, OidcConfig } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import { originalQueryTextOf } from "../../lib/query-secrets.ts";
import { fail, getFault } from "../../model/error.ts";
import type { ProviderClient } from "../../plugin/call.ts";
import type { Principal } from "../../runtime/access/principal.ts";
import { oidcCredentialId } from "../../runtime/access/admin-principals.ts";
import { OidcProvider } from "./oidc-provider.ts";
import { OIDC_PATH } from "../../runtime/access/admin-paths.ts";

export const CALLBACK = `${OIDC_PATH}/callback`;
const FLOW_TOKEN_PATTERN = /^[\w-]{43}$/;
/** Time to log in at the provider, in seconds. */
const MAX_AGE_S = 600;
const MAX_CLAIM_LENGTH = 256;
const MAX_CODE_LENGTH = 4_096;

export interface OidcSignInOptions {
  /** Returns the admin section of the current config. */
  readonly adminConfig: () => AdminConfig | undefined;
  readonly fetch: (config: OidcConfig) => ProviderClient["fetch"];
  readonly log: Pick<Log, "warn">;
}

const deriveFlowValue = (of: "state" | "nonce" | "verifier", word: string): string =>
  createHash("sha256").update(`${of} ${word}`).digest("base64url");

export class OidcSignIn {
  readonly #options: OidcSignInOptions;
  #provider: OidcProvider | undefined;

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
    const provider = this.#currentProvider();
    const { callbackUrl, clientId, scopes } = provider.config;
    const own = new URL(callbackUrl);
    // A cookie belongs to one host name. A request under another name starts again under the
    // configured one.
    if (req.headers.host?.toLowerCase() !== own.host)
      return { location: `${own.origin}${OIDC_PATH}` };
    const flowToken = randomBytes(32).toString("base64url");
    const to = new URL(await this.#withLoggedErrors(() => provider.authorizationUrl()));
    const challenge = createHash("sha256")
      .update(deriveFlowValue("verifier", flowToken))
      .digest("base64url");
    for (const [name, value] of Object.entries({
      response_type: "code",
      client_id: clientId,
      redirect_uri: callbackUrl,
      scope: scopes.join(" "),
      state: deriveFlowValue("state", flowToken),
      nonce: deriveFlowValue("nonce", flowToken),
      code_challenge: challenge,
      code_challenge_method: "S256",
    }))
      to.searchParams.set(name, value);
    return { location: to.href, cookie: formatFlowCookie(flowToken, secure) };
  }

  /** Returns the principal of a browser that has returned from the provider. */
  async finish(req: IncomingMessage, secure: boolean): Promise<Principal> {
    const provider = this.#currentProvider();
    const params = new URLSearchParams(originalQueryTextOf(req));
    const flowToken = readFlowToken(req, secure);
    const [code = "", state, iss] = ["code", "state", "iss"].map(
      (name) => params.get(name) ?? undefined,
    );
    if (flowToken === undefined || state !== deriveFlowValue("state", flowToken))
      return rejectSignIn(
        "The sign-in was started elsewhere or is older than 10 minutes. Start again.",
      );
    if (iss !== undefined && iss !== provider.config.issuer)
      return rejectSignIn("The response is from another identity provider.");
    if (params.has("error") || code === "" || code.length > MAX_CODE_LENGTH)
      return rejectSignIn("The identity provider denied the sign-in.");
    const claims = await this.#withLoggedErrors(() =>
      provider.exchangeCode(
        code,
        deriveFlowValue("verifier", flowToken),
        deriveFlowValue("nonce", flowToken),
      ),
    );
    return principalOfClaims(claims, provider.config);
  }

  /** Whether gateway.yaml configures an identity provider. */
  get isConfigured(): boolean {
    return this.#options.adminConfig()?.oidc !== undefined;
  }

  #currentProvider(): OidcProvider {
    const config =
      this.#options.adminConfig()?.oidc ??
      fail("not_found", "No identity provider is configured. Set admin.oidc in gateway.yaml.", {
        code: "no_oidc",
      });
    // A reload creates a new config object.
    if (this.#provider?.config !== config)
      this.#provider = new OidcProvider(config, this.#options.fetch(config));
    return this.#provider;
  }

  /** Logs the details of an error, and throws a short message for the user. */
  async #withLoggedErrors<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
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
 * Returns the principal of an ID token. Its role is the first one in gateway.yaml whose group the
 * token contains.
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
 * Returns the `Set-Cookie` value of the login cookie. `SameSite=Lax`: the browser sends it when the
 * provider redirects back.
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

function readFlowToken(req: IncomingMessage, secure: boolean): string | undefined {
  const name = `${cookieNameOf(secure)}=`;
  const found = (req.headers.cookie ?? "")
    .split(";", 50)
    .map((each) => each.trim())
    .filter((each) => each.startsWith(name));
  const token = found.length === 1 ? found[0]!.slice(name.length) : "";
  return FLOW_TOKEN_PATTERN.test(token) ? token : undefined;
}
