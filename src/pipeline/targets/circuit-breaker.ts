// A circuit breaker. While it is open, its target is in cooldown: the target is tried after the
// others, and one request at a time probes whether it works again. The breaker never rejects a
// request. It has no timer and reads no clock: every `now` is passed in.

const MIN_OPEN_MS = 5_000;
const MAX_OPEN_MS = 60_000;
/**
 * Time in milliseconds without a failure after which the next cooldown is as short as the first.
 */
const RESET_AFTER_MS = 60_000;

/**
 * State of the breaker. `open`: in cooldown. `half_open`: the cooldown has passed, and one request
 * may probe.
 */
export type BreakerState = "closed" | "open" | "half_open";

export class CircuitBreaker {
  /** End of the cooldown on the monotonic clock, in milliseconds. */
  openUntil = 0;
  isClosed = true;
  #openMs = 0;
  #openedAt = 0;
  #isProbing = false;

  state(now: number): BreakerState {
    return this.isClosed ? "closed" : now < this.openUntil ? "open" : "half_open";
  }

  /** Returns whether this call may probe. Until the probe ends, other calls see an open breaker. */
  tryProbe(now: number): boolean {
    if (this.#isProbing || this.state(now) !== "half_open") return false;
    return (this.#isProbing = true);
  }

  get isProbing(): boolean {
    return this.#isProbing;
  }

  /** Ends a probe without a result, so that another call may probe. */
  releaseProbe(): void {
    this.#isProbing = false;
  }

  /**
   * Records a failure. Returns whether the breaker opens or stays open because of it.
   * `hasEnoughEvidence`: whether the failures suffice to open it.
   */
  recordFailure(
    now: number,
    { hasEnoughEvidence, isProbe }: { hasEnoughEvidence: boolean; isProbe: boolean },
  ): boolean {
    if (!this.isClosed) {
      // Calls that were running when the breaker opened are not new evidence.
      if (isProbe) this.#open(now);
      return isProbe;
    }
    if (!hasEnoughEvidence) return false;
    if (now - this.openUntil > RESET_AFTER_MS) this.#openMs = 0;
    this.#openedAt = now;
    this.#open(now);
    return true;
  }

  /**
   * Records a success. Returns whether the breaker closes because of it. Only a call that started
   * after the breaker opened can close it.
   */
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
