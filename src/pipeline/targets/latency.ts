// Estimates the time to first token of one target. It has no timer and reads no clock: every
// `now` is on the monotonic clock, in milliseconds.

/** Half-life of measurements, and of an estimate without new calls, in milliseconds. */
const HALF_LIFE_MS = 10_000;
/** Minimum weight of a new measurement, even with many measurements per second. */
const MIN_NEW_WEIGHT = 0.1;
/**
 * Number of skipped requests per halving of an estimate. When an estimate has decayed far enough,
 * one request is sent to the slow target. An estimate halves at most once per this many requests,
 * so that few requests are sent to slow targets when there are few requests in total.
 */
const SKIPS_PER_HALVING = 25;
/**
 * Estimate in milliseconds for a target that has no measurement and is being called. Only the first
 * request waits for this target.
 */
const UNMEASURED_MS = 1e9;

export class Latency {
  /** Undefined if never measured. */
  #averageMs: number | undefined;
  #measuredAt = 0;
  #calledAt = 0;
  #skips = 0;
  /**
   * Number of calls without content yet. `#silentSince` is when content last arrived, or when the
   * first of these calls started.
   */
  #waiting = 0;
  #silentSince = 0;

  /** Moving average of the measurements. Undefined if there are none. */
  get averageMs(): number | undefined {
    return this.#averageMs;
  }

  /** Time when the target was last called. */
  get calledAt(): number {
    return this.#calledAt;
  }

  /**
   * Returns the estimate that is compared. The time that running calls have been waiting is a lower
   * bound for the next response. The estimate of a target that is not called decreases over time,
   * until a request tests the target. The estimate is then the measured average again.
   */
  estimateMs(now: number): number {
    const silence = this.#waiting > 0 ? now - this.#silentSince : 0;
    if (this.#averageMs === undefined) return this.#waiting > 0 ? UNMEASURED_MS + silence : 0;
    const halves = Math.min((now - this.#calledAt) / HALF_LIFE_MS, this.#skips / SKIPS_PER_HALVING);
    return Math.max(this.#averageMs * 2 ** -halves, silence);
  }

  recordStart(now: number): void {
    this.#calledAt = now;
    this.#skips = 0;
    if (this.#waiting++ === 0) this.#silentSince = now;
  }

  /** Records that another target was called instead. */
  recordSkip(): void {
    this.#skips++;
  }

  /** Records the first token of a call. `ms`: time since the call started. */
  recordFirstToken(now: number, ms: number): void {
    this.#silentSince = now;
    this.#waiting--;
    this.#addMeasurement(now, ms);
  }

  /**
   * Records the end of a call without content. Its duration is a lower bound of the latency, so it
   * counts only if it exceeds the average. The duration of a failure is no evidence.
   */
  recordEndWithoutContent(now: number, ms: number): void {
    this.#waiting--;
    if (this.#averageMs !== undefined && ms > this.#averageMs) this.#addMeasurement(now, ms);
  }

  #addMeasurement(now: number, ms: number): void {
    const kept = Math.min(1 - MIN_NEW_WEIGHT, 2 ** ((this.#measuredAt - now) / HALF_LIFE_MS));
    this.#averageMs = this.#averageMs === undefined ? ms : this.#averageMs * kept + ms * (1 - kept);
    this.#measuredAt = now;
  }
}
