// How a credential is put on a request, and what happens when a provider calls its token over. The token is fetched anew once,
// whatever number of calls it fails; each of them is sent again once.
import { fail } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { Auth, AuthRejection, SignableRequest, TokenAuth } from "../../plugin/provider.ts";
import type { Credential } from "../exchange/mounted.ts";

/** The host gives up a token that takes longer. */
const RENEW_TIMEOUT_MS = 30_000;
/** Clouds call a token over with either. */
const MAY_MEAN_EXPIRED: ReadonlySet<number> = new Set([401, 403]);

/** What goes beside the headers of the request, which others have seen and may keep. */
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

/** One credential's token under one scheme. */
class CachedToken {
  /** How often it was fetched anew. */
  version = 0;
  #renewing: Promise<boolean> | undefined;

  /** Resolves to true when there is another than at `age`. The first that asks fetches it; the others wait for that. */
  async ensureNewerThan(version: number, ask: () => Promise<boolean>): Promise<boolean> {
    while (this.version === version) {
      if (!this.#renewing) return this.#renew(ask);
      // One may have been refused for another reason: what it heard is no answer to the next.
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

/** By scheme and credential; both are a generation's. */
const tokens = new WeakMap<object, WeakMap<Credential, CachedToken>>();

function tokenOf(auth: TokenAuth<any>, credential: Credential): CachedToken {
  let of = tokens.get(auth);
  if (!of) tokens.set(auth, (of = new WeakMap()));
  let token = of.get(credential);
  if (!token) of.set(credential, (token = new CachedToken()));
  return token;
}

/** Which token a request is about to be signed with; nothing for a scheme that has none. */
export const tokenVersion = (auth: Auth<any>, credential: Credential): number | undefined =>
  isTokenAuth(auth) ? tokenOf(auth, credential).version : undefined;

/**
 * Whether a refused request should be signed and sent once more: its scheme says that the token is over, and there is another.
 * `age`: the token that it was signed with. What `refused` throws is thrown.
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
  const asked = Promise.resolve().then(() => auth.renewToken({ ...refusal, signal }, fields));
  try {
    return await Promise.race([asked, late]);
  } catch (problem) {
    if (problem !== signal.reason) throw problem;
    asked.catch(() => {});
    return fail("upstream_auth", "Another token did not come in time.", { code: "token_timeout" });
  }
}
