// Limits the calls to a target that recovers, so that waiting requests do not all arrive at the
// same time. For a while, the target receives little more than before it failed.

const DURATION_MS = 30_000;
const GROWTH_INTERVAL_MS = 15_000;
const GROWTH = 1.2;
const BURST_MS = 100;
/** Calls per second that are always allowed. */
const MIN_RATE = 5;

export class SlowStart {
  isActive = false;
  /** Calls per second before the failure. 0 if unknown. */
  #previousRate = 0;
  #startedAt = 0;
  #refilledAt = 0;
  /** Number of calls that may be made now. */
  #tokens = 0;

  start(now: number, pace: number): void {
    this.isActive = true;
    this.#startedAt = this.#refilledAt = now;
    this.#previousRate = pace;
    this.#tokens = 1;
  }

  get endsAt(): number {
    return this.#startedAt + DURATION_MS;
  }

  isActiveAt(now: number): boolean {
    return !this.#hasEnded(now);
  }

  end(): void {
    this.isActive = false;
  }

  /** Returns whether one more call is allowed now, and counts it. */
  tryTake(now: number): boolean {
    if (this.#hasEnded(now)) return true;
    this.#refill(now);
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  /** Counts a call that was made without permission. Later calls then wait longer. */
  forceTake(now: number): void {
    if (this.#hasEnded(now)) return;
    this.#refill(now);
    this.#tokens = Math.max(-this.#previousRate, this.#tokens - 1);
  }

  /** Whether no call would be allowed now. */
  isExhausted(now: number): boolean {
    if (this.#hasEnded(now)) return false;
    this.#refill(now);
    return this.#tokens < 1;
  }

  /**
   * Adds the calls earned since the last refill. Few are saved, so that a second's calls do not all
   * arrive at its start.
   */
  #refill(now: number): void {
    const passed = now - this.#startedAt;
    const rate =
      this.#previousRate > 0
        ? Math.max(
            MIN_RATE,
            this.#previousRate * GROWTH ** (1 + Math.floor(passed / GROWTH_INTERVAL_MS)),
          )
        : MIN_RATE * 2 ** Math.floor(passed / 1_000);
    const most = Math.max(1, (rate * BURST_MS) / 1_000);
    this.#tokens = Math.min(most, this.#tokens + (rate * (now - this.#refilledAt)) / 1_000);
    this.#refilledAt = now;
  }

  #hasEnded(now: number): boolean {
    if (now - this.#startedAt >= DURATION_MS) this.isActive = false;
    return !this.isActive;
  }
}
