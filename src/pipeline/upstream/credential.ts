// Adds credentials to requests and renews expired tokens. An expired token is renewed once, even if
// many calls fail because of the token. Each of these calls is sent again.
import { fail } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { Auth, AuthRejection, SignableRequest, TokenAuth } from "../../plugin/provider.ts";
import type { Credential } from "../exchange/mounted.ts";

/** Maximum duration of a token renewal, in milliseconds. */
const RENEW_TIMEOUT_MS = 30_000;
/** Statuses that may mean an expired token. Clouds use either status. */
const MAY_MEAN_EXPIRED: ReadonlySet<number> = new Set([401, 403]);

/**
 * Returns the headers with the credential. They are kept separate from the request's own headers,
 * because other code has access to those.
 */
export function createAuthHeaders(
  auth: Auth<any>,
  { fields }: Credential,
  request: () => SignableRequest,
): HeadersOut | Promise<HeadersOut> {
  if (auth === "none") return {};
  if (typeof auth === "function") return auth(request(), fields);
  if (isTokenAuth(auth)) return auth.sign(request(), fields);
  const secret = fields[auth.field];
  return secret === undefined
    ? {}
    : { [auth.header.toLowerCase()]: `${auth.prefix ?? ""}${String(secret)}` };
}

const isTokenAuth = (auth: Auth<any>): auth is TokenAuth<any> =>
  typeof auth === "object" && "sign" in auth;

/** The token of one credential under one scheme. */
class CachedToken {
  /** Number of renewals. */
  version = 0;
  #renewing: Promise<boolean> | undefined;

  /**
   * Resolves to true when there is a newer token than `version`. The first caller renews the token,
   * and the others wait for it.
   */
  async ensureNewerThan(version: number, ask: () => Promise<boolean>): Promise<boolean> {
    while (this.version === version) {
      if (!this.#renewing) return this.#renew(ask);
      // The other request may have been rejected for another reason, so its result does not apply
      // to this request.
      await this.#renewing;
    }
    return true;
  }

  #renew(ask: () => Promise<boolean>): Promise<boolean> {
    this.#renewing = ask()
      .then((over) => {
        if (over) this.version++;
        return over;
      })
      .finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }
}

/** Tokens by scheme and credential. Schemes and credentials both belong to a config generation. */
const tokens = new WeakMap<object, WeakMap<Credential, CachedToken>>();

function tokenOf(auth: TokenAuth<any>, credential: Credential): CachedToken {
  let of = tokens.get(auth);
  if (!of) tokens.set(auth, (of = new WeakMap()));
  let token = of.get(credential);
  if (!token) of.set(credential, (token = new CachedToken()));
  return token;
}

/**
 * Returns the version of the token with which a request is about to be signed, or undefined for a
 * scheme without tokens.
 */
export const tokenVersion = (auth: Auth<any>, credential: Credential): number | undefined =>
  isTokenAuth(auth) ? tokenOf(auth, credential).version : undefined;

/**
 * Whether a rejected request should be signed and sent again, because its scheme considers the
 * token expired and a new token is available. `version`: the token that the request was signed
 * with. Errors of `refusal` are rethrown.
 */
export async function renewToken(
  auth: Auth<any>,
  credential: Credential,
  version: number | undefined,
  refusal: () => Omit<AuthRejection, "signal"> | Promise<Omit<AuthRejection, "signal">>,
  status: number,
): Promise<boolean> {
  if (version === undefined || !isTokenAuth(auth) || !MAY_MEAN_EXPIRED.has(status)) return false;
  const rejection = await refusal();
  return tokenOf(auth, credential).ensureNewerThan(version, () =>
    renewWithTimeout(auth, credential, rejection),
  );
}

async function renewWithTimeout(
  auth: TokenAuth<any>,
  { fields }: Credential,
  refusal: Omit<AuthRejection, "signal">,
): Promise<boolean> {
  const signal = AbortSignal.timeout(RENEW_TIMEOUT_MS);
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  const renewal = Promise.resolve().then(() => auth.renewToken({ ...refusal, signal }, fields));
  try {
    return await Promise.race([renewal, late]);
  } catch (problem) {
    if (problem !== signal.reason) throw problem;
    renewal.catch(() => {});
    return fail("upstream_auth", "The provider's access token could not be refreshed in time.", {
      code: "token_timeout",
    });
  }
}
