/** A token that a backend gave, and how long it is good. */
export interface MintedToken {
  /** The token. */
  readonly token: string;
  /** How long the token is valid, in milliseconds from now. */
  readonly ttlMs: number;
}

interface CachedToken extends MintedToken {
  readonly expiresAt: number;
}

/** The most that a token is fetched anew before its end, and the part of its life: a request must not carry one that ends on its way. */
const RENEW_BEFORE_MS = 300_000;
const RENEW_BEFORE_FRACTION = 0.1;

/**
 * Tokens that end, by account: for `sign` and `refused` of a provider's `auth`. Many requests at once fetch one; one that is near its
 * end is fetched anew while the old one is still used; a failure is not kept. `ctx.shared` keeps them across reloads.
 */
export class AccountTokens {
  readonly #now: () => number;
  readonly #cached = new Map<string, CachedToken>();
  readonly #pending = new Map<string, Promise<string>>();

  /** `now`: the time in milliseconds, as `Date.now` has it. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The account's token; `mint` is asked where there is none, and before it ends. An account is any text: its secret is better hashed. */
  get(account: string, mint: () => Promise<MintedToken>): string | Promise<string> {
    const kept = this.#cached.get(account);
    const left = kept ? kept.expiresAt - this.#now() : 0;
    if (kept && left > Math.min(RENEW_BEFORE_MS, kept.ttlMs * RENEW_BEFORE_FRACTION))
      return kept.token;
    const coming = this.renew(account, mint);
    if (!kept || left <= 0) return coming;
    // A request that comes after it is over is told why there is no other.
    coming.catch(() => {});
    return kept.token;
  }

  /** One that is not the last one: for a token that the backend has called over. */
  renew(account: string, mint: () => Promise<MintedToken>): Promise<string> {
    const coming = this.#pending.get(account);
    if (coming) return coming;
    const fetched = mint().then(({ token, ttlMs }) => {
      const now = this.#now();
      // Accounts that are configured no more leave nothing behind.
      for (const [other, { expiresAt }] of this.#cached)
        if (expiresAt <= now) this.#cached.delete(other);
      this.#cached.set(account, { token, ttlMs, expiresAt: now + ttlMs });
      return token;
    });
    this.#pending.set(account, fetched);
    fetched.finally(() => this.#pending.delete(account)).catch(() => {});
    return fetched;
  }
}
