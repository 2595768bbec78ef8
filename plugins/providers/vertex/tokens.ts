// Tokens that end, by account. Many requests at once fetch one; one that is near its end is fetched anew while the old one is still
// used; a failure is not kept.

/** A token, and how long it is good. */
export interface Minted {
  readonly token: string;
  readonly forMs: number;
}

interface Kept {
  readonly token: string;
  readonly until: number;
}

/** What is fetched anew before it ends: a request must not carry one that ends on its way. */
const EARLY_MS = 300_000;

export class Tokens {
  readonly #kept = new Map<string, Kept>();
  readonly #coming = new Map<string, Promise<string>>();

  /** The account's token; `mint` is asked where there is none. */
  get(account: string, mint: () => Promise<Minted>): string | Promise<string> {
    const kept = this.#kept.get(account);
    const left = kept ? kept.until - Date.now() : 0;
    if (kept && left > EARLY_MS) return kept.token;
    const coming = this.another(account, mint);
    if (!kept || left <= 0) return coming;
    // A request that comes after it is over is told why there is no other.
    coming.catch(() => {});
    return kept.token;
  }

  /** One that is not the last one. */
  another(account: string, mint: () => Promise<Minted>): Promise<string> {
    const coming = this.#coming.get(account);
    if (coming) return coming;
    const fetched = mint().then(({ token, forMs }) => {
      this.#kept.set(account, { token, until: Date.now() + forMs });
      return token;
    });
    this.#coming.set(account, fetched);
    fetched.finally(() => this.#coming.delete(account)).catch(() => {});
    return fetched;
  }
}
