/** An access token that a backend issued, with its lifetime. */
export interface MintedToken {
  /** The token. */
  readonly token: string;
  /** How long the token is valid, in milliseconds from now. */
  readonly ttlMs: number;
}

interface CachedToken extends MintedToken {
  readonly expiresAt: number;
}

/**
 * A token is renewed when its remaining lifetime falls below the smaller of these limits: 5
 * minutes, or 10% of its full lifetime. A request must not contain a token that expires before the
 * request arrives.
 */
const RENEW_BEFORE_MS = 300_000;
const RENEW_BEFORE_FRACTION = 0.1;

/**
 * Cache of expiring access tokens, by account. Use it in `sign` and `renewToken` of a provider's
 * `auth`.
 *
 * Concurrent requests for one account share one fetch. A token that is about to expire is renewed
 * in the background while the old token is still used. A failed fetch is not cached. Store the
 * instance with `ctx.shared` to keep the tokens across reloads.
 */
export class AccountTokens {
  readonly #now: () => number;
  readonly #cached = new Map<string, CachedToken>();
  readonly #pending = new Map<string, Promise<string>>();

  /**
   * Creates an empty cache. `now` returns the current time in Unix milliseconds, like `Date.now`.
   */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Returns the token of an account. Calls `mint` if there is no valid token, or in the background
   * if the token is about to expire. `account` can be any text. Pass a hash instead of the
   * account's secret.
   */
  get(account: string, mint: () => Promise<MintedToken>): string | Promise<string> {
    const kept = this.#cached.get(account);
    const left = kept ? kept.expiresAt - this.#now() : 0;
    if (kept && left > Math.min(RENEW_BEFORE_MS, kept.ttlMs * RENEW_BEFORE_FRACTION))
      return kept.token;
    const coming = this.renew(account, mint);
    if (!kept || left <= 0) return coming;
    // The background renewal may fail. The next request after the token has expired then tries
    // again and receives the error.
    coming.catch(() => {});
    return kept.token;
  }

  /**
   * Fetches a new token even if the cached one has not expired. Use it after the backend revoked
   * the cached token.
   */
  renew(account: string, mint: () => Promise<MintedToken>): Promise<string> {
    const coming = this.#pending.get(account);
    if (coming) return coming;
    const fetched = mint().then(({ token, ttlMs }) => {
      const now = this.#now();
      // Drop the expired tokens of accounts that are no longer configured.
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
