// Client of the operators' identity provider for OpenID Connect: discovery, code exchange, and
// verification of ID tokens. It uses the egress guard: only the public Internet and the issuer's
// own origin, no redirects, 5 s, and a size limit.
import type { JWTPayload } from "jose";
import type { OidcConfig } from "../../config/gateway-config.ts";
import { fail } from "../../model/error.ts";
import type { ProviderClient } from "../../plugin/call.ts";

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

/** RFC 6749, section 2.3.1: both are form-encoded first. */
const basicAuthorization = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64")}`;
