// Client of an identity provider with OpenID Connect: the code flow with PKCE, state, and nonce, ID
// tokens, and refresh tokens. The gateway's own sign-in of operators uses it as well.
import { createHash } from "node:crypto";
import { createFault } from "../../model/error.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import type { ProviderClient } from "../call.ts";
import {
  basicAuthorization,
  OAuthError,
  readIssuerMetadata,
  requestOAuthJson,
  type OAuthRequest,
} from "./oauth-requests.ts";

/** The registration of this gateway at an identity provider. */
export interface OidcSettings {
  /** Issuer, exactly as the provider reports it. The endpoints are discovered from it. */
  readonly issuer: string;
  /** ID of the client. */
  readonly clientId: string;
  /** Secret of the client. Unset for a public client. */
  readonly clientSecret?: Opt<string>;
  /** URL to which the provider redirects the browser. */
  readonly callbackUrl: string;
  /** Requested scopes. They include `openid`. */
  readonly scopes: readonly string[];
  /** Further parameters of the authorization request. Default: none. */
  readonly parameters?: Opt<Readonly<Record<string, string>>>;
}

/** Claims about a person. */
export type OidcClaims = Readonly<Record<string, unknown>>;

/** Tokens that the provider issued for a person. */
export interface OidcTokens {
  /** Verified claims of the ID token. */
  readonly claims: OidcClaims;
  /** Token with which the claims can be requested again. Unset if the provider issued none. */
  readonly refreshToken?: Opt<string>;
}

/** The provider's answer to a refresh token that it accepted. */
export interface OidcRefresh {
  /**
   * Token of the next refresh. The provider may accept the previous token no longer, so store this
   * one before you call `readClaims`, which can fail.
   */
  readonly refreshToken: string;
  /**
   * Called at any time after the refresh. Returns the current claims, from the verified ID token or
   * from the userinfo endpoint. Throws if the provider cannot be reached, or if the response is about
   * another person than `subject`.
   */
  readClaims(subject: string): Promise<OidcClaims>;
}

/** The response of a browser that returned from the provider. */
export interface OidcReturn {
  /** Query of the callback URL. */
  readonly query: URLSearchParams;
  /** Secret that only this browser has, as it was passed to `authorizationUrl`. */
  readonly flowToken: Opt<string>;
}

const TIMEOUT_MS = 5_000;
const MAX_CODE_LENGTH = 4_096;
const ALGORITHMS = ["RS256", "ES256", "EdDSA"];
const CLOCK_SKEW_S = 60;
const DISCOVERY_TTL_MS = 600_000;

interface Endpoints {
  readonly authorization: string;
  readonly token: string;
  readonly keys: string;
  /** Only some refreshes need it, so an invalid URL must not prevent sign-ins. */
  userinfo(): string | undefined;
}

/** Returns one of the three values that are derived from the secret of a browser. */
function deriveFlowValue(of: "state" | "nonce" | "verifier", flowToken: string): string {
  const hash = createHash("sha256").update(`${of} ${flowToken}`);
  return hash.digest("base64url");
}

/**
 * Client of an identity provider. Pass `ctx.fetch`, and mark the option with the issuer with
 * `x-origin: true`, so that the gateway can reach it.
 *
 * The state, the nonce, and the PKCE verifier of a sign-in are derived from one random secret of
 * the browser, which it keeps in a cookie. Nothing has to be stored.
 */
export class OidcClient {
  /** The settings of the client. */
  readonly settings: OidcSettings;
  readonly #fetch: ProviderClient["fetch"];
  #discovery: { readonly at: number; readonly found: Promise<Endpoints> } | undefined;

  /** Creates a client. It sends no request before its first method is called. */
  constructor(settings: OidcSettings, fetch: ProviderClient["fetch"]) {
    this.settings = settings;
    this.#fetch = fetch;
  }

  /**
   * Returns the URL at which the browser signs in. `flowToken` is a random secret of at least 256
   * bits, which the browser gets in a cookie.
   */
  async authorizationUrl(flowToken: string): Promise<string> {
    const { clientId, callbackUrl, scopes, parameters } = this.settings;
    const url = new URL((await this.#discoverCached()).authorization);
    const challenge = createHash("sha256")
      .update(deriveFlowValue("verifier", flowToken))
      .digest("base64url");
    for (const [name, value] of Object.entries({
      ...parameters,
      response_type: "code",
      client_id: clientId,
      redirect_uri: callbackUrl,
      scope: scopes.join(" "),
      state: deriveFlowValue("state", flowToken),
      nonce: deriveFlowValue("nonce", flowToken),
      code_challenge: challenge,
      code_challenge_method: "S256",
    }))
      url.searchParams.set(name, value);
    return url.href;
  }

  /**
   * Returns the tokens of a browser that has returned from the provider. Throws the fault
   * `unauthenticated` with a text for the user if the response belongs to another browser or to
   * another provider, or if the provider denied the sign-in. Any other error contains details for
   * the log.
   */
  async finish({ query, flowToken }: OidcReturn): Promise<OidcTokens> {
    const code = query.get("code") ?? "";
    const issuer = query.get("iss");
    if (!flowToken || query.get("state") !== deriveFlowValue("state", flowToken))
      return reject("The sign-in was started elsewhere or is older than 10 minutes. Start again.");
    if (issuer !== null && issuer !== this.settings.issuer)
      return reject("The response is from another identity provider.");
    if (query.has("error") || code === "" || code.length > MAX_CODE_LENGTH)
      return reject("The identity provider denied the sign-in.");
    return this.exchangeCode(
      code,
      deriveFlowValue("verifier", flowToken),
      deriveFlowValue("nonce", flowToken),
    );
  }

  /** Exchanges a code for the claims of the ID token. The error contains details for the log. */
  async exchangeCode(code: string, verifier: string, nonce: string): Promise<OidcTokens> {
    const answer = await this.#requestTokens({
      grant_type: "authorization_code",
      code,
      redirect_uri: this.settings.callbackUrl,
      code_verifier: verifier,
    });
    const idToken = textOf(answer["id_token"]);
    if (idToken === undefined) throw new Error("The response has no ID token.");
    const claims = await this.#verifyIdToken(idToken, nonce);
    return { claims, refreshToken: textOf(answer["refresh_token"]) };
  }

  /**
   * Exchanges a refresh token. Returns undefined if the provider has ended the person's session.
   * Throws if the provider cannot be reached.
   */
  async refresh(refreshToken: string): Promise<OidcRefresh | undefined> {
    const answer = await this.#requestTokens({
      grant_type: "refresh_token",
      refresh_token: refreshToken,
    }).catch((error: unknown) => {
      if (error instanceof OAuthError && error.code === "invalid_grant") return undefined;
      throw error;
    });
    if (!answer) return undefined;
    const idToken = textOf(answer["id_token"]);
    return {
      refreshToken: textOf(answer["refresh_token"]) ?? refreshToken,
      readClaims: async (subject) => {
        const claims =
          idToken === undefined
            ? await this.#readUserinfo(textOf(answer["access_token"]))
            : await this.#verifyIdToken(idToken);
        if (claims["sub"] !== subject) throw new Error("The response is about another person.");
        return claims;
      },
    };
  }

  async #requestTokens(fields: Record<string, string>): Promise<JsonObject> {
    const { clientId, clientSecret } = this.settings;
    const { token } = await this.#discoverCached();
    const isPublic = clientSecret === undefined || clientSecret === null;
    return this.#fetchJson(token, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(!isPublic && { authorization: basicAuthorization(clientId, clientSecret) }),
      },
      body: new URLSearchParams({ ...fields, ...(isPublic && { client_id: clientId }) }).toString(),
    });
  }

  /** @param nonce Nonce of the sign-in. A refreshed ID token has none. */
  async #verifyIdToken(token: string, nonce?: string): Promise<OidcClaims> {
    const { createLocalJWKSet, jwtVerify } = await import("jose");
    const { issuer, clientId } = this.settings;
    const { keys } = await this.#discoverCached();
    const keySet = createLocalJWKSet((await this.#fetchJson(keys)) as never);
    const { payload } = await jwtVerify(token, keySet, {
      issuer,
      audience: clientId,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_SKEW_S,
      requiredClaims: ["exp", "iat", "sub"],
    });
    if (nonce !== undefined && payload["nonce"] !== nonce)
      throw new Error("The nonce does not match.");
    // If a token has several audiences, `azp` names the client that it was issued for.
    const { azp } = payload;
    if (azp !== undefined && azp !== clientId)
      throw new Error("The token was issued to another client.");
    return payload;
  }

  async #readUserinfo(accessToken: string | undefined): Promise<OidcClaims> {
    const userinfo = (await this.#discoverCached()).userinfo();
    if (accessToken === undefined || userinfo === undefined)
      throw new Error("The response has no ID token, and the provider has no userinfo endpoint.");
    return this.#fetchJson(userinfo, { headers: { authorization: `Bearer ${accessToken}` } });
  }

  #discoverCached(): Promise<Endpoints> {
    const now = performance.now();
    if (this.#discovery && now - this.#discovery.at < DISCOVERY_TTL_MS)
      return this.#discovery.found;
    const found = this.#discover();
    this.#discovery = { at: now, found };
    // A failed discovery is repeated with the next request.
    found.catch(() => (this.#discovery = undefined));
    return found;
  }

  async #discover(): Promise<Endpoints> {
    const { issuer } = this.settings;
    const { endpoint } = await readIssuerMetadata(this.#fetch, issuer, {
      urls: [`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`],
      timeoutMs: TIMEOUT_MS,
    });
    const required = (name: string): string =>
      endpoint(name) ?? failOAuth(`The provider's metadata has no ${name}.`);
    return {
      authorization: required("authorization_endpoint"),
      token: required("token_endpoint"),
      keys: required("jwks_uri"),
      userinfo: () => endpoint("userinfo_endpoint"),
    };
  }

  #fetchJson(url: string, init: Omit<OAuthRequest, "timeoutMs"> = {}): Promise<JsonObject> {
    return requestOAuthJson(this.#fetch, url, { ...init, timeoutMs: TIMEOUT_MS });
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

function reject(why: string): never {
  throw createFault("unauthenticated", why, { code: "oidc_refused" });
}

function failOAuth(message: string): never {
  throw new OAuthError("invalid_response", message);
}
