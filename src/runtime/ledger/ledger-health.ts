// Whether the store takes what it is given, since when it does not, and how long to pause before it is asked again.

const BACKOFF_MS = { first: 20, last: 1_000 };

/** Why the store accepts no rows; `away`: it has reported that it cannot be reached. */
export interface StoreFailure {
  readonly reason: string;
  readonly isUnreachable: boolean;
}

export class LedgerHealth {
  backoffMs = 0;
  #failure: { message: string; since: number; away: boolean } | undefined;
  readonly #onChange: (trouble: StoreFailure | undefined) => void;

  /** `tell` is called when trouble begins, when the store turns out to be away, and when it is over. */
  constructor(onChange: (trouble: StoreFailure | undefined) => void) {
    this.#onChange = onChange;
  }

  get failure(): string | undefined {
    return this.#failure?.message;
  }

  /** The store cannot be reached, as it has said itself. */
  get isUnreachable(): boolean {
    return this.#failure?.away ?? false;
  }

  /** How long there has been trouble; 0 when there is none. */
  failingForMs(): number {
    return this.#failure ? performance.now() - this.#failure.since : 0;
  }

  /** The last batch landed, and nothing is known to be left undone. */
  markHealthy(): void {
    this.backoffMs = 0;
    if (!this.#failure) return;
    this.#failure = undefined;
    this.#onChange(undefined);
  }

  /** `forMs`: how long this trouble has lasted already. */
  markFailing(message: string, forMs = 0, away = false): void {
    this.backoffMs = Math.min(BACKOFF_MS.last, this.backoffMs * 2 || BACKOFF_MS.first);
    const before = this.#failure;
    const since = Math.min(before?.since ?? Infinity, performance.now() - forMs);
    const now = { message, since, away: away || (before?.away ?? false) };
    this.#failure = now;
    if (now.away !== before?.away) this.#onChange({ reason: message, isUnreachable: now.away });
  }

  /** `forMs`: so long that nothing waits for it any more. */
  markUnreachable(message: string, forMs: number): void {
    this.markFailing(message, forMs, true);
  }
}
