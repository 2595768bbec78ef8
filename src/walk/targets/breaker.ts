// A circuit breaker. While it is open its target is in cooldown: it is tried after the others, and one request at a time probes whether
// it works again. It never refuses a request. It has no timer and reads no clock: every `now` is passed in.

const FIRST_MS = 5_000;
const MOST_MS = 60_000;
/** After so long without a failure the next cooldown is as short as the first one. */
const CALM_MS = 60_000;

/** open: in cooldown. half_open: the cooldown has passed, and one request may probe. */
export type BreakerState = "closed" | "open" | "half_open";

export class Breaker {
  /** The monotonic clock, in milliseconds. */
  until = 0;
  closed = true;
  #openMs = 0;
  #since = 0;
  #probing = false;

  state(now: number): BreakerState {
    return this.closed ? "closed" : now < this.until ? "open" : "half_open";
  }

  /** Whether this call may probe; until it ends, others see an open breaker. */
  probe(now: number): boolean {
    if (this.#probing || this.state(now) !== "half_open") return false;
    return (this.#probing = true);
  }

  get probing(): boolean {
    return this.#probing;
  }

  /** The probe ended without a result: another call may probe. */
  release(): void {
    this.#probing = false;
  }

  /** Returns whether it opens or stays open by this. `enough`: the evidence suffices to open it. */
  failed(now: number, { enough, probe }: { enough: boolean; probe: boolean }): boolean {
    if (!this.closed) {
      // Calls that were under way when it opened are no new evidence.
      if (probe) this.#open(now);
      return probe;
    }
    if (!enough) return false;
    if (now - this.until > CALM_MS) this.#openMs = 0;
    this.#since = now;
    this.#open(now);
    return true;
  }

  /** Returns whether it closes by this: by the success of a call that began after it opened. */
  answered(started: number): boolean {
    if (this.closed || started < this.#since) return false;
    this.closed = true;
    this.#probing = false;
    return true;
  }

  #open(now: number): void {
    this.#openMs = Math.min(MOST_MS, this.#openMs === 0 ? FIRST_MS : this.#openMs * 2);
    this.until = now + this.#openMs;
    this.closed = false;
    this.#probing = false;
  }
}
