// A circuit breaker. While it is open, its target is in cooldown: the target is tried after all
// others, and one request at a time probes it. The breaker never rejects a request. It has no timer
// and reads no clock: every `now` is passed in.

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

// Counts the outcomes of a target's calls in the last 10 seconds, per second.

const SECONDS = 10;
const OUTCOMES = { good: 0, bad: 1 } as const;

export class OutcomeWindow {
  readonly #counts = new Uint32Array(Object.keys(OUTCOMES).length * SECONDS);
  #second = -1;

  /** Records an outcome. `now`: the monotonic clock in milliseconds. */
  record(outcome: keyof typeof OUTCOMES, now: number): void {
    this.#advance(now);
    this.#counts[OUTCOMES[outcome] * SECONDS + (this.#second % SECONDS)]!++;
  }

  count(outcome: keyof typeof OUTCOMES, now: number): number {
    this.#advance(now);
    let sum = 0;
    const from = OUTCOMES[outcome] * SECONDS;
    for (let i = from; i < from + SECONDS; i++) sum += this.#counts[i]!;
    return sum;
  }

  /**
   * Returns the calls per second, successful or not, averaged over the seconds that had any. The
   * current second counts only if it is the only one.
   */
  callsPerSecond(now: number): number {
    this.#advance(now);
    let [sum, seconds] = [0, 0];
    for (let i = 1; i < SECONDS; i++) {
      const calls = this.#callsIn((this.#second + i) % SECONDS);
      sum += calls;
      if (calls > 0) seconds++;
    }
    return seconds > 0 ? sum / seconds : this.#callsIn(this.#second % SECONDS);
  }

  #callsIn(second: number): number {
    return (
      this.#counts[OUTCOMES.good * SECONDS + second]! +
      this.#counts[OUTCOMES.bad * SECONDS + second]!
    );
  }

  /** Clears the seconds that have passed since the last update. */
  #advance(now: number): void {
    const second = Math.floor(now / 1_000);
    if (second === this.#second) return;
    const passed = Math.min(SECONDS, second - this.#second);
    for (let i = 1; i <= passed; i++)
      for (const kind of Object.values(OUTCOMES))
        this.#counts[kind * SECONDS + ((this.#second + i + SECONDS) % SECONDS)] = 0;
    this.#second = second;
  }
}
