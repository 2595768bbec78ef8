// The operators' identity provider, as OpenID Connect has it: where it is, what it answers to a code, and whether an ID token is its own.
// It is asked by the guarded way: the public internet and the issuer's own origin, no redirect, five seconds, a bounded answer.
import type { JWTPayload } from "jose";
import type { OidcConfig } from "../../config/types.ts";
import { fail } from "../../model/error.ts";
import type { ProviderAccess } from "../../plugin/call.ts";

const PATIENCE_MS = 5_000;
const MOST_BYTES = 256 * 1024;
const ALGORITHMS = ["RS256", "ES256", "EdDSA"];
const SKEW_S = 60;
const KNOWN_MS = 600_000;

interface Discovered {
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly jwks_uri: string;
}

export class OidcProvider {
  readonly config: OidcConfig;
  readonly #fetch: ProviderAccess["fetch"];
  #known: { readonly at: number; readonly found: Promise<Discovered> } | undefined;

  constructor(config: OidcConfig, fetch: ProviderAccess["fetch"]) {
    this.config = config;
    this.#fetch = fetch;
  }

  async authorization(): Promise<string> {
    return (await this.#discovered()).authorization_endpoint;
  }

  /** The claims of whose code it is. Fails with what a person may be told; the log has the rest. */
  async claims(code: string, verifier: string, nonce: string): Promise<JWTPayload> {
    const { token_endpoint, jwks_uri } = await this.#discovered();
    const { clientId, clientSecret, callback } = this.config;
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: callback,
      code_verifier: verifier,
      ...(clientSecret === undefined && { client_id: clientId }),
    });
    const answer = (await this.#json(token_endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(clientSecret !== undefined && { authorization: basic(clientId, clientSecret) }),
      },
      body: form.toString(),
    })) as { id_token?: unknown };
    if (typeof answer.id_token !== "string") throw new Error("Its answer has no ID token.");
    return this.#verified(answer.id_token, jwks_uri, nonce);
  }

  async #verified(token: string, keysAt: string, nonce: string): Promise<JWTPayload> {
    const { createLocalJWKSet, jwtVerify } = await import("jose");
    const { issuer, clientId } = this.config;
    const keys = createLocalJWKSet((await this.#json(keysAt)) as never);
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: clientId,
      algorithms: ALGORITHMS,
      clockTolerance: SKEW_S,
      requiredClaims: ["exp", "iat", "sub"],
    });
    if (payload["nonce"] !== nonce) throw new Error("Its nonce is another one.");
    // Of several audiences it says for which one it was made.
    const { azp } = payload;
    if (azp !== undefined && azp !== clientId) throw new Error("It was made for another client.");
    return payload;
  }

  #discovered(): Promise<Discovered> {
    const now = performance.now();
    if (this.#known && now - this.#known.at < KNOWN_MS) return this.#known.found;
    const found = this.#discover();
    this.#known = { at: now, found };
    // What failed is asked for again.
    found.catch(() => (this.#known = undefined));
    return found;
  }

  async #discover(): Promise<Discovered> {
    const { issuer } = this.config;
    const at = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const said = (await this.#json(at)) as unknown as Discovered & { issuer: unknown };
    if (said.issuer !== issuer) throw new Error(`It calls itself ${String(said.issuer)}.`);
    for (const name of ["authorization_endpoint", "token_endpoint", "jwks_uri"] as const)
      if (typeof said[name] !== "string" || !/^https?:\/\//.test(said[name]))
        throw new Error(`It says no ${name}.`);
    return said;
  }

  async #json(url: string, init: Parameters<ProviderAccess["fetch"]>[1] = {}): Promise<object> {
    const answer = await this.#fetch(url, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) });
    const parts: Uint8Array[] = [];
    let length = 0;
    for await (const part of answer.body ?? []) {
      length += part.length;
      if (length > MOST_BYTES) throw new Error(`Its answer is larger than ${MOST_BYTES} bytes.`);
      parts.push(part);
    }
    if (!answer.ok) throw new Error(`${new URL(url).pathname} answers ${answer.status}.`);
    const said: unknown = JSON.parse(Buffer.concat(parts).toString("utf8"));
    return typeof said === "object" && said !== null
      ? said
      : fail("upstream", "Its answer is no object.");
  }
}

/** RFC 6749, 2.3.1: both are encoded as in a form before. */
const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64")}`;
