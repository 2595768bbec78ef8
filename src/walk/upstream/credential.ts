// How a credential is put on a request, and what happens when a provider calls its token over. The token is fetched anew once,
// whatever number of calls it fails; each of them is sent again once.
import { fail } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { Auth, AuthRefusal, Signable, TokenAuth } from "../../plugin/provider.ts";
import type { Credential } from "../mounted.ts";

/** The host gives up a token that takes longer. */
const RENEW_MS = 30_000;
/** Clouds call a token over with either. */
const MAY_MEAN_OVER: ReadonlySet<number> = new Set([401, 403]);

/** What goes beside the headers of the request, which others have seen and may keep. */
export function credentialed(
  auth: Auth<any>,
  { fields }: Credential,
  request: () => Signable,
): HeadersOut | Promise<HeadersOut> {
  if (auth === "none") return {};
  if (typeof auth === "function") return auth(request(), fields);
  if (isToken(auth)) return auth.sign(request(), fields);
  const secret = fields[auth.field];
  return secret === undefined
    ? {}
    : { [auth.header.toLowerCase()]: `${auth.prefix ?? ""}${String(secret)}` };
}

const isToken = (auth: Auth<any>): auth is TokenAuth<any> =>
  typeof auth === "object" && "sign" in auth;

/** One credential's token under one scheme. */
class Token {
  /** How often it was fetched anew. */
  age = 0;
  #renewing: Promise<boolean> | undefined;

  /** Resolves to true when there is another than at `age`. The first that asks fetches it; the others wait for that. */
  async renewed(age: number, ask: () => Promise<boolean>): Promise<boolean> {
    while (this.age === age) {
      if (!this.#renewing) return this.#renew(ask);
      // One may have been refused for another reason: what it heard is no answer to the next.
      await this.#renewing;
    }
    return true;
  }

  #renew(ask: () => Promise<boolean>): Promise<boolean> {
    this.#renewing = ask()
      .then((over) => {
        if (over) this.age++;
        return over;
      })
      .finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }
}

/** By scheme and credential; both are a generation's. */
const tokens = new WeakMap<object, WeakMap<Credential, Token>>();

function tokenOf(auth: TokenAuth<any>, credential: Credential): Token {
  let of = tokens.get(auth);
  if (!of) tokens.set(auth, (of = new WeakMap()));
  let token = of.get(credential);
  if (!token) of.set(credential, (token = new Token()));
  return token;
}

/** Which token a request is about to be signed with; nothing for a scheme that has none. */
export const tokenAge = (auth: Auth<any>, credential: Credential): number | undefined =>
  isToken(auth) ? tokenOf(auth, credential).age : undefined;

/**
 * Whether a refused request should be signed and sent once more: its scheme says that the token is over, and there is another.
 * `age`: the token that it was signed with. What `refused` throws is thrown.
 */
export async function renewed(
  auth: Auth<any>,
  credential: Credential,
  age: number | undefined,
  refusal: () => Omit<AuthRefusal, "signal"> | Promise<Omit<AuthRefusal, "signal">>,
  status: number,
): Promise<boolean> {
  if (age === undefined || !isToken(auth) || !MAY_MEAN_OVER.has(status)) return false;
  const said = await refusal();
  return tokenOf(auth, credential).renewed(age, () => inTime(auth, credential, said));
}

async function inTime(
  auth: TokenAuth<any>,
  { fields }: Credential,
  refusal: Omit<AuthRefusal, "signal">,
): Promise<boolean> {
  const signal = AbortSignal.timeout(RENEW_MS);
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  const asked = Promise.resolve().then(() => auth.refused({ ...refusal, signal }, fields));
  try {
    return await Promise.race([asked, late]);
  } catch (problem) {
    if (problem !== signal.reason) throw problem;
    asked.catch(() => {});
    return fail("upstream_auth", "Another token did not come in time.", { code: "token_late" });
  }
}
