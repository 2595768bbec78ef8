// A target that comes back is not asked by all at once that waited for it: for a while it gets little more than it had before.

const DURATION_MS = 30_000;
const GROWTH_INTERVAL_MS = 15_000;
const GROWTH = 1.2;
const BURST_MS = 100;
/** Calls a second that are always let through. */
const MIN_RATE = 5;

export class SlowStart {
  isActive = false;
  /** What it had before, in calls a second; 0: not known. */
  #previousRate = 0;
  #startedAt = 0;
  #refilledAt = 0;
  /** Calls that may be let through. */
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

  /** Whether one more is let through now. */
  tryTake(now: number): boolean {
    if (this.#hasEnded(now)) return true;
    this.#refill(now);
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  /** One more was let through all the same: the next ones have to wait for longer. */
  forceTake(now: number): void {
    if (this.#hasEnded(now)) return;
    this.#refill(now);
    this.#tokens = Math.max(-this.#previousRate, this.#tokens - 1);
  }

  /** Whether none would be let through. */
  isExhausted(now: number): boolean {
    if (this.#hasEnded(now)) return false;
    this.#refill(now);
    return this.#tokens < 1;
  }

  /** Little is saved up, so that a second's calls do not all come in its first moment. */
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
