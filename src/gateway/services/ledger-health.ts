// Whether the store takes what it is given, since when it does not, and how long to pause before it is asked again.

const PAUSE_MS = { first: 20, last: 1_000 };

/** Why the store accepts no rows; `away`: it has reported that it cannot be reached. */
export interface Trouble {
  readonly why: string;
  readonly away: boolean;
}

export class LedgerHealth {
  pauseMs = 0;
  #trouble: { message: string; since: number; away: boolean } | undefined;
  readonly #tell: (trouble: Trouble | undefined) => void;

  /** `tell` is called when trouble begins, when the store turns out to be away, and when it is over. */
  constructor(tell: (trouble: Trouble | undefined) => void) {
    this.#tell = tell;
  }

  get trouble(): string | undefined {
    return this.#trouble?.message;
  }

  /** The store cannot be reached, as it has said itself. */
  get isAway(): boolean {
    return this.#trouble?.away ?? false;
  }

  /** How long there has been trouble; 0 when there is none. */
  lasting(): number {
    return this.#trouble ? performance.now() - this.#trouble.since : 0;
  }

  /** The last batch landed, and nothing is known to be left undone. */
  good(): void {
    this.pauseMs = 0;
    if (!this.#trouble) return;
    this.#trouble = undefined;
    this.#tell(undefined);
  }

  /** `forMs`: how long this trouble has lasted already. */
  bad(message: string, forMs = 0, away = false): void {
    this.pauseMs = Math.min(PAUSE_MS.last, this.pauseMs * 2 || PAUSE_MS.first);
    const before = this.#trouble;
    const since = Math.min(before?.since ?? Infinity, performance.now() - forMs);
    const now = { message, since, away: away || (before?.away ?? false) };
    this.#trouble = now;
    if (now.away !== before?.away) this.#tell({ why: message, away: now.away });
  }

  /** `forMs`: so long that nothing waits for it any more. */
  away(message: string, forMs: number): void {
    this.bad(message, forMs, true);
  }
}
