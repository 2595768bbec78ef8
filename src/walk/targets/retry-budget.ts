// How many further calls the requests of one client may cost, at all targets together: less than a tenth of its requests. It reads no
// clock: every `now` is the monotonic one, in milliseconds.

const EACH = 0.06;
/** What is saved up, and what is owed, at most. */
const MOST = 50;
/** A client with few requests gets one retry in so long, and has a few of them saved up. */
const SLOW_MS = 30_000;
const FEW = 10;
/** Calls elsewhere that are allowed in any case, and then for each request. */
const ELSEWHERE = { first: 100, each: 0.03 };

export class RetryBudget {
  #left = FEW;
  #elsewhere = ELSEWHERE.first;
  #at: number;

  constructor(now: number) {
    this.#at = now;
  }

  /** A request of the client begins. */
  add(now: number): void {
    this.#left = Math.min(MOST, this.#left + EACH);
    if (this.#left < FEW) this.#left = Math.min(FEW, this.#left + (now - this.#at) / SLOW_MS);
    this.#at = now;
    this.#elsewhere += ELSEWHERE.each;
  }

  /** Takes one further call. `halved`: the client sends its requests again by itself, so each costs twice as much. */
  take(halved: boolean): boolean {
    const cost = halved ? 2 : 1;
    if (this.#left < cost) return false;
    this.#left -= cost;
    this.#elsewhere--;
    return true;
  }

  /** The same, of a target that is likely to answer. What was not used is saved up for the day when another target fails. */
  fallBack(): boolean {
    if (this.#elsewhere < 1) return false;
    this.#elsewhere--;
    this.#left = Math.max(-MOST, this.#left - 1);
    return true;
  }
}
