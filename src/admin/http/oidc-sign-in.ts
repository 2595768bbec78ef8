// Implements login with the operators' identity provider: the OpenID Connect code flow with PKCE,
// state, and nonce. All three are derived from one random token, which only the browser stores in a
// separate cookie. The gateway therefore stores nothing for logins that have begun.
import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AdminConfig, OidcConfig } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import { originalQueryTextOf } from "../../lib/query-secrets.ts";
import { fail, getFault } from "../../model/error.ts";
import type { ProviderClient } from "../../plugin/call.ts";
import { type Principal, OIDC_PATH } from "../../runtime/access/principal.ts";
import { oidcCredentialId } from "../../runtime/access/admin-principals.ts";
import { readTokenCookie } from "../../runtime/access/session-cookie.ts";
import type { JWTPayload } from "jose";

export const CALLBACK = `${OIDC_PATH}/callback`;
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
    // A cookie is valid for one host name. A request with another host name is redirected to the
    // configured one and starts again.
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
    const flowToken = readTokenCookie(req, cookieNameOf(secure));
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

// Client of the operators' identity provider for OpenID Connect: discovery, code exchange, and
// verification of ID tokens. The client uses the egress guard: only the public internet and the
// issuer's own origin, no redirects, a timeout of 5 s, and a size limit.

const TIMEOUT_MS = 5_000;
const MAX_RESPONSE_BYTES = 256 * 1024;
const ALGORITHMS = ["RS256", "ES256", "EdDSA"];
const CLOCK_SKEW_S = 60;
const DISCOVERY_TTL_MS = 600_000;

interface DiscoveryDocument {
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly jwks_uri: string;
}

export class OidcProvider {
  readonly config: OidcConfig;
  readonly #fetch: ProviderClient["fetch"];
  #discovery: { readonly at: number; readonly found: Promise<DiscoveryDocument> } | undefined;

  constructor(config: OidcConfig, fetch: ProviderClient["fetch"]) {
    this.config = config;
    this.#fetch = fetch;
  }

  async authorizationUrl(): Promise<string> {
    return (await this.#discoverCached()).authorization_endpoint;
  }

  /**
   * Exchanges a code for the claims of the ID token. The error is safe to show to the user, and the
   * log has the details.
   */
  async exchangeCode(code: string, verifier: string, nonce: string): Promise<JWTPayload> {
    const { token_endpoint, jwks_uri } = await this.#discoverCached();
    const { clientId, clientSecret, callbackUrl } = this.config;
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: callbackUrl,
      code_verifier: verifier,
      ...(clientSecret === undefined && { client_id: clientId }),
    });
    const answer = (await this.#fetchJson(token_endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(clientSecret !== undefined && {
          authorization: basicAuthorization(clientId, clientSecret),
        }),
      },
      body: form.toString(),
    })) as { id_token?: unknown };
    if (typeof answer.id_token !== "string") throw new Error("The response has no ID token.");
    return this.#verifyIdToken(answer.id_token, jwks_uri, nonce);
  }

  async #verifyIdToken(token: string, keysAt: string, nonce: string): Promise<JWTPayload> {
    const { createLocalJWKSet, jwtVerify } = await import("jose");
    const { issuer, clientId } = this.config;
    const keys = createLocalJWKSet((await this.#fetchJson(keysAt)) as never);
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: clientId,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_SKEW_S,
      requiredClaims: ["exp", "iat", "sub"],
    });
    if (payload["nonce"] !== nonce) throw new Error("The nonce does not match.");
    // If a token has several audiences, `azp` names the client that it was issued for.
    const { azp } = payload;
    if (azp !== undefined && azp !== clientId)
      throw new Error("The token was issued to another client.");
    return payload;
  }

  #discoverCached(): Promise<DiscoveryDocument> {
    const now = performance.now();
    if (this.#discovery && now - this.#discovery.at < DISCOVERY_TTL_MS)
      return this.#discovery.found;
    const found = this.#discover();
    this.#discovery = { at: now, found };
    // A failed discovery is repeated with the next request.
    found.catch(() => (this.#discovery = undefined));
    return found;
  }

  async #discover(): Promise<DiscoveryDocument> {
    const { issuer } = this.config;
    const at = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const document = (await this.#fetchJson(at)) as unknown as DiscoveryDocument & {
      issuer: unknown;
    };
    if (document.issuer !== issuer)
      throw new Error(`The issuer is ${String(document.issuer)}, not the configured one.`);
    for (const name of ["authorization_endpoint", "token_endpoint", "jwks_uri"] as const)
      if (typeof document[name] !== "string" || !/^https?:\/\//.test(document[name]))
        throw new Error(`The provider's metadata has no ${name}.`);
    return document;
  }

  async #fetchJson(
    url: string,
    init: Parameters<ProviderClient["fetch"]>[1] = {},
  ): Promise<object> {
    const answer = await this.#fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const parts: Uint8Array[] = [];
    let length = 0;
    for await (const part of answer.body ?? []) {
      length += part.length;
      if (length > MAX_RESPONSE_BYTES)
        throw new Error(`The response is larger than ${MAX_RESPONSE_BYTES} bytes.`);
      parts.push(part);
    }
    if (!answer.ok) throw new Error(`${new URL(url).pathname} returned status ${answer.status}.`);
    const parsed: unknown = JSON.parse(Buffer.concat(parts).toString("utf8"));
    return typeof parsed === "object" && parsed !== null
      ? parsed
      : fail("upstream", "The response is not a JSON object.");
  }
}

/** According to RFC 6749, section 2.3.1, both are form-encoded first. */
const basicAuthorization = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64")}`;
