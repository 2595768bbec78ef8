// Credentials that are not of one user's account: a fixed token, client credentials, and token
// exchange (RFC 8693). In an exchange, the client's token goes to the operator's authorization
// server only, and the server receives the token that was issued for it.
import { createHash } from "node:crypto";
import { AccountTokens, fail, OAuthError, type Context, type RequestHead } from "tollgate/plugin";
import type { CredentialResolver, ServerCredential } from "../server-credential.ts";
import { discoverAuthorizationServer, requestToken } from "./oauth-client.ts";

/** Maximum number of client tokens that are kept for an exchange. */
const MAX_SUBJECT_TOKENS = 10_000;
/** Time for which a client's token is kept, in milliseconds. */
const SUBJECT_TOKEN_MS = 60_000;
const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
const JWT_SHAPE = /^eyJ[\w-]*\.[\w-]*\.[\w-]*$/;

/** Options of `auth` that both grants have. */
export interface GrantOptions {
  readonly issuer?: string | undefined;
  readonly token_url?: string | undefined;
  readonly client_id: string;
  readonly client_secret?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly audience?: string | undefined;
}

type GrantContext = Pick<Context, "fetch" | "shared" | "log">;

/** Returns the resolver of a fixed token. */
export function createTokenResolver(token: string, header = "authorization"): CredentialResolver {
  const name = header.toLowerCase();
  const value = name === "authorization" ? `Bearer ${token}` : token;
  const credential: ServerCredential = { headers: { [name]: value }, owner: "shared" };
  return { resolve: () => credential };
}

/** Returns the resolver of client credentials. Its token is shared by all clients. */
export function createClientCredentialsResolver(
  ctx: GrantContext,
  url: string,
  options: GrantOptions,
): CredentialResolver {
  const grant = createGrant(ctx, url, options);
  const account = grant.nameOf("client_credentials");
  const toCredential = (token: string) => toBearer(token, "shared");
  const mint = () => grant.mint({ grant_type: "client_credentials" });
  return {
    resolve: () => {
      const token = grant.tokens.get(account, mint);
      return typeof token === "string" ? toCredential(token) : token.then(toCredential);
    },
    renew: async (rejected) => {
      const current = toCredential(await grant.tokens.get(account, mint));
      return isSame(current, rejected)
        ? toCredential(await grant.tokens.renew(account, mint))
        : current;
    },
  };
}

/** Returns the resolver of a token exchange. Each client has its own token. */
export function createExchangeResolver(
  ctx: GrantContext,
  url: string,
  options: GrantOptions,
  subjects: SubjectTokens,
): CredentialResolver {
  const grant = createGrant(ctx, url, options);
  const prepare = (x: RequestHead) => {
    const subject = subjects.find(x);
    const mint = async () => {
      const minted = await grant.mint({
        grant_type: EXCHANGE,
        subject_token: subject.token,
        subject_token_type: ACCESS_TOKEN,
        requested_token_type: ACCESS_TOKEN,
        audience: options.audience,
      });
      // The client's own token never goes to the server, even if the exchange returns it.
      return minted.token === subject.token
        ? fail("upstream_auth", "The token exchange returned the client's own token.", {
            code: "no_token",
          })
        : minted;
    };
    return { account: grant.nameOf(subject.digest), mint, owner: x.identity!.id };
  };
  return {
    resolve: async (x) => {
      const { account, mint, owner } = prepare(x);
      return toBearer(await grant.tokens.get(account, mint), owner);
    },
    renew: async (rejected, x) => {
      const { account, mint, owner } = prepare(x);
      const current = toBearer(await grant.tokens.get(account, mint), owner);
      return isSame(current, rejected)
        ? toBearer(await grant.tokens.renew(account, mint), owner)
        : current;
    },
  };
}

const toBearer = (token: string, owner: string): ServerCredential => ({
  headers: { authorization: `Bearer ${token}` },
  owner,
});

const isSame = (a: ServerCredential, b: ServerCredential): boolean =>
  a.headers["authorization"] === b.headers["authorization"];

/** Requests tokens of one grant. The tokens are kept across reloads. */
function createGrant(ctx: GrantContext, url: string, options: GrantOptions) {
  const { issuer, token_url: tokenUrl, client_id: id, client_secret: secret, scopes } = options;
  const tokens = ctx.shared("tokens of servers", () => new AccountTokens(Date.now));
  let endpoint: Promise<string> | undefined;
  const findEndpoint = () => {
    if (tokenUrl !== undefined) return tokenUrl;
    endpoint ??= discoverAuthorizationServer(ctx.fetch, issuer!).then((of) => of.tokenEndpoint);
    endpoint.catch(() => (endpoint = undefined));
    return endpoint;
  };
  const identity = JSON.stringify([url, issuer, tokenUrl, id, secret, scopes, options.audience]);
  return {
    tokens,
    /** Name of a token in the cache. It contains no secret. */
    nameOf: (of: string) => createHash("sha256").update(`${identity}\n${of}`).digest("base64"),
    async mint(parameters: Readonly<Record<string, string | undefined>>) {
      try {
        const { accessToken, expiresAt } = await requestToken(
          ctx.fetch,
          await findEndpoint(),
          { id, secret },
          { ...parameters, scope: scopes?.join(" "), resource: url },
        );
        return { token: accessToken, ttlMs: expiresAt - Date.now() };
      } catch (error) {
        if (!(error instanceof OAuthError)) throw error;
        return fail("upstream_auth", `No token for the server: ${error.message}`, {
          code: "no_token",
        });
      }
    },
  };
}

/**
 * Tokens of clients that are being served, for an exchange. A frontend receives the token in
 * `extractCredential` only. The token is found again by the hash in the identity, which exists only
 * if a middleware has validated the token.
 */
export class SubjectTokens {
  readonly #tokens = new Map<string, { readonly token: string; readonly at: number }>();

  /** Keeps the token of a request. Other credentials are ignored. */
  remember(token: string | undefined): void {
    if (token === undefined || !JWT_SHAPE.test(token)) return;
    const digest = createHash("sha256").update(token).digest("hex");
    this.#tokens.delete(digest);
    const now = performance.now();
    for (const [other, { at }] of this.#tokens) {
      if (now - at < SUBJECT_TOKEN_MS && this.#tokens.size < MAX_SUBJECT_TOKENS) break;
      this.#tokens.delete(other);
    }
    this.#tokens.set(digest, { token, at: now });
  }

  /** Returns the validated token of a request. Throws the fault for a client without one. */
  find({ identity }: RequestHead): { readonly token: string; readonly digest: string } {
    const digest = identity?.accessToken?.digest;
    const kept = digest === undefined ? undefined : this.#tokens.get(digest);
    return kept
      ? { token: kept.token, digest: digest! }
      : fail(
          "forbidden",
          "This server requires a token of your identity provider, not an API key.",
          { code: "identity_token_required" },
        );
  }
}
