// How many further calls the requests of one client may cost, at all targets together: less than a tenth of its requests. It reads no
// clock: every `now` is the monotonic one, in milliseconds.

const RETRIES_PER_REQUEST = 0.06;
/** What is saved up, and what is owed, at most. */
const MAX_BALANCE = 50;
/** A client with few requests gets one retry in so long, and has a few of them saved up. */
const SLOW_REFILL_MS = 30_000;
const INITIAL_BALANCE = 10;
/** Calls elsewhere that are allowed in any case, and then for each request. */
const FALLBACK_ALLOWANCE = { first: 100, each: 0.03 };

export class RetryBudget {
  #balance = INITIAL_BALANCE;
  #fallbacks = FALLBACK_ALLOWANCE.first;
  #refilledAt: number;

  constructor(now: number) {
    this.#refilledAt = now;
  }

  /** A request of the client begins. */
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

  /** Takes one further call. `halved`: the client sends its requests again by itself, so each costs twice as much. */
  takeRetry(isClientRetry: boolean): boolean {
    const cost = isClientRetry ? 2 : 1;
    if (this.#balance < cost) return false;
    this.#balance -= cost;
    this.#fallbacks--;
    return true;
  }

  /** The same, of a target that is likely to answer. What was not used is saved up for the day when another target fails. */
  takeFallback(): boolean {
    if (this.#fallbacks < 1) return false;
    this.#fallbacks--;
    this.#balance = Math.max(-MAX_BALANCE, this.#balance - 1);
    return true;
  }
}
