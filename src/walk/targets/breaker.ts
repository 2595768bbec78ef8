// Keeps calls away from a target that fails, and lets one through now and then to see whether it still does. It has no timer and reads
// no clock: it is told the time.

/** So many failures in a row open it, or this share of so many calls within the window. */
const IN_A_ROW = 5;
const SHARE = 0.5;
const ENOUGH = 20;
const FIRST_MS = 5_000;
const MOST_MS = 60_000;

/** open: nothing is asked. half_open: one call is let through, or under way. */
export type BreakerState = "closed" | "open" | "half_open";

export class Breaker {
  /** The monotonic clock, in milliseconds. */
  until = 0;
  closed = true;
  #row = 0;
  #openMs = 0;
  #since = 0;
  #probing = false;

  state(now: number): BreakerState {
    return this.closed ? "closed" : now < this.until ? "open" : "half_open";
  }

  /** Whether this call may go and see; the others wait for what it finds. */
  probe(now: number): boolean {
    if (this.#probing || this.state(now) !== "half_open") return false;
    return (this.#probing = true);
  }

  get probing(): boolean {
    return this.#probing;
  }

  /** The one that went to see has found out nothing: another may go. */
  release(): void {
    this.#probing = false;
  }

  /** Says whether it has opened by this. `good` and `bad`: of the window, this failure in it. */
  failed(
    now: number,
    { good, bad, probe }: { good: number; bad: number; probe: boolean },
  ): boolean {
    if (!this.closed) {
      // What was under way when it opened says nothing new.
      if (probe) this.#open(now);
      return probe;
    }
    this.#row++;
    const much = good + bad >= ENOUGH && bad >= SHARE * (good + bad);
    if (this.#row < IN_A_ROW && !much) return false;
    this.#since = now;
    this.#open(now);
    return true;
  }

  /** Says whether it has closed by this: by a call that was begun after it had opened. */
  answered(started: number): boolean {
    this.#row = 0;
    if (this.closed || started < this.#since) return false;
    this.closed = true;
    this.#probing = false;
    this.#openMs = 0;
    return true;
  }

  #open(now: number): void {
    this.#openMs = Math.min(MOST_MS, this.#openMs === 0 ? FIRST_MS : this.#openMs * 2);
    this.until = now + this.#openMs;
    this.closed = false;
    this.#probing = false;
    this.#row = 0;
  }
}
