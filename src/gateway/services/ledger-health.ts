// Whether the store takes what it is given, since when it does not, and how long to pause before it is asked again.

const PAUSE_MS = { first: 20, last: 1_000 };

export class LedgerHealth {
  pauseMs = 0;
  #trouble: { message: string; since: number; away: boolean } | undefined;
  readonly #tell: (trouble: string | undefined) => void;

  /** `tell` hears when trouble begins, with its reason, and when it is over. */
  constructor(tell: (trouble: string | undefined) => void) {
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
  bad(message: string, forMs = 0): void {
    this.pauseMs = Math.min(PAUSE_MS.last, this.pauseMs * 2 || PAUSE_MS.first);
    const before = this.#trouble;
    const since = Math.min(before?.since ?? Infinity, performance.now() - forMs);
    this.#trouble = { message, since, away: before?.away ?? false };
    if (!before) this.#tell(message);
  }

  /** `forMs`: so long that nothing waits for it any more. */
  away(message: string, forMs: number): void {
    this.bad(message, forMs);
    this.#trouble!.away = true;
  }
}
