// A circuit breaker. While it is open its target is in cooldown: it is tried after the others, and one request at a time probes whether
// it works again. It never refuses a request. It has no timer and reads no clock: every `now` is passed in.

const MIN_OPEN_MS = 5_000;
const MAX_OPEN_MS = 60_000;
/** After so long without a failure the next cooldown is as short as the first one. */
const RESET_AFTER_MS = 60_000;

/** open: in cooldown. half_open: the cooldown has passed, and one request may probe. */
export type BreakerState = "closed" | "open" | "half_open";

export class CircuitBreaker {
  /** The monotonic clock, in milliseconds. */
  openUntil = 0;
  isClosed = true;
  #openMs = 0;
  #openedAt = 0;
  #isProbing = false;

  state(now: number): BreakerState {
    return this.isClosed ? "closed" : now < this.openUntil ? "open" : "half_open";
  }

  /** Whether this call may probe; until it ends, others see an open breaker. */
  tryProbe(now: number): boolean {
    if (this.#isProbing || this.state(now) !== "half_open") return false;
    return (this.#isProbing = true);
  }

  get isProbing(): boolean {
    return this.#isProbing;
  }

  /** The probe ended without a result: another call may probe. */
  releaseProbe(): void {
    this.#isProbing = false;
  }

  /** Returns whether it opens or stays open by this. `enough`: the evidence suffices to open it. */
  recordFailure(
    now: number,
    { hasEnoughEvidence, isProbe }: { hasEnoughEvidence: boolean; isProbe: boolean },
  ): boolean {
    if (!this.isClosed) {
      // Calls that were under way when it opened are no new evidence.
      if (isProbe) this.#open(now);
      return isProbe;
    }
    if (!hasEnoughEvidence) return false;
    if (now - this.openUntil > RESET_AFTER_MS) this.#openMs = 0;
    this.#openedAt = now;
    this.#open(now);
    return true;
  }

  /** Returns whether it closes by this: by the success of a call that began after it opened. */
  recordSuccess(started: number): boolean {
    if (this.isClosed || started < this.#openedAt) return false;
    this.isClosed = true;
    this.#isProbing = false;
    return true;
  }

  #open(now: number): void {
    this.#openMs = Math.min(MAX_OPEN_MS, this.#openMs === 0 ? MIN_OPEN_MS : this.#openMs * 2);
    this.openUntil = now + this.#openMs;
    this.isClosed = false;
    this.#isProbing = false;
  }
}
