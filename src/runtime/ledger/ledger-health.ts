// Tracks whether the store accepts commands, the start of its failure, and the backoff before the
// next attempt.

const BACKOFF_MS = { first: 20, last: 1_000 };

/**
 * The reason why the store accepts no rows. `isUnreachable`: the store itself reported that it
 * cannot be reached.
 */
export interface StoreFailure {
  readonly reason: string;
  readonly isUnreachable: boolean;
}

export class LedgerHealth {
  backoffMs = 0;
  #failure: { message: string; since: number; away: boolean } | undefined;
  readonly #onChange: (trouble: StoreFailure | undefined) => void;

  /**
   * @param onChange Called when a failure begins, when the store turns out to be unreachable, and
   *   when the failure is over.
   */
  constructor(onChange: (trouble: StoreFailure | undefined) => void) {
    this.#onChange = onChange;
  }

  get failure(): string | undefined {
    return this.#failure?.message;
  }

  /** Whether the store itself reported that it cannot be reached. */
  get isUnreachable(): boolean {
    return this.#failure?.away ?? false;
  }

  /** Returns how long the store has been failing, in milliseconds. `0` if it is healthy. */
  failingForMs(): number {
    return this.#failure ? performance.now() - this.#failure.since : 0;
  }

  /** Called when the last batch was applied and nothing remains to be repaired. */
  markHealthy(): void {
    this.backoffMs = 0;
    if (!this.#failure) return;
    this.#failure = undefined;
    this.#onChange(undefined);
  }

  /**
   * Marks a failure.
   * @param forMs How long the failure has lasted already.
   */
  markFailing(message: string, forMs = 0, away = false): void {
    this.backoffMs = Math.min(BACKOFF_MS.last, this.backoffMs * 2 || BACKOFF_MS.first);
    const before = this.#failure;
    const since = Math.min(before?.since ?? Infinity, performance.now() - forMs);
    const now = { message, since, away: away || (before?.away ?? false) };
    this.#failure = now;
    if (now.away !== before?.away) this.#onChange({ reason: message, isUnreachable: now.away });
  }

  /**
   * Marks the store as unreachable.
   * @param forMs Assumed duration of the failure, long enough that no command keeps waiting.
   */
  markUnreachable(message: string, forMs: number): void {
    this.markFailing(message, forMs, true);
  }
}
