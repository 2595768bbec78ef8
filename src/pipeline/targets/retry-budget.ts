// Limits the additional calls of one client's requests, for all targets together, to less than a
// tenth of its requests. It reads no clock: every `now` is on the monotonic clock, in milliseconds.

const RETRIES_PER_REQUEST = 0.06;
/** Maximum balance that is saved or owed, in calls. */
const MAX_BALANCE = 50;
/**
 * Time in milliseconds in which a client with few requests earns one retry. It starts with
 * `INITIAL_BALANCE` retries.
 */
const SLOW_REFILL_MS = 30_000;
const INITIAL_BALANCE = 10;
/** Fallback calls that are always allowed (`first`), plus an allowance per request (`each`). */
const FALLBACK_ALLOWANCE = { first: 100, each: 0.03 };

export class RetryBudget {
  #balance = INITIAL_BALANCE;
  #fallbacks = FALLBACK_ALLOWANCE.first;
  #refilledAt: number;

  constructor(now: number) {
    this.#refilledAt = now;
  }

  /** Records that a request of the client begins. */
  addRequest(now: number): void {
    this.#balance = Math.min(MAX_BALANCE, this.#balance + RETRIES_PER_REQUEST);
    if (this.#balance < INITIAL_BALANCE)
      this.#balance = Math.min(
        INITIAL_BALANCE,
        this.#balance + (now - this.#refilledAt) / SLOW_REFILL_MS,
      );
    this.#refilledAt = now;
    this.#fallbacks += FALLBACK_ALLOWANCE.each;
  }

  /**
   * Takes one additional call from the budget. Returns false if the budget is used up.
   * `isClientRetry`: the client retries by itself, so each call uses twice as much.
   */
  takeRetry(isClientRetry: boolean): boolean {
    const cost = isClientRetry ? 2 : 1;
    if (this.#balance < cost) return false;
    this.#balance -= cost;
    this.#fallbacks--;
    return true;
  }

  /**
   * Takes one fallback call to a target that is likely to answer. Unused calls are saved for the
   * time when another target fails.
   */
  takeFallback(): boolean {
    if (this.#fallbacks < 1) return false;
    this.#fallbacks--;
    this.#balance = Math.max(-MAX_BALANCE, this.#balance - 1);
    return true;
  }
}
