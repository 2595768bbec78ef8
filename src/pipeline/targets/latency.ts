// Estimates the time to first token of one target. It has no timer and reads no clock: every
// `now` is on the monotonic clock, in milliseconds.

/** Half-life of measurements, and of an estimate that no call renewed, in milliseconds. */
const HALF_LIFE_MS = 10_000;
/** Minimum weight of a new measurement, however many there are per second. */
const MIN_NEW_WEIGHT = 0.1;
/**
 * Number of skipped requests per halving of an estimate. An estimate that has decayed far enough
 * sends one request to the slow target. Estimates halve at most once per this many requests, so
 * that few requests go to slow targets when there are few in total.
 */
const SKIPS_PER_HALVING = 25;
/**
 * Estimate in milliseconds for a target that was never measured and that is being called. Only the
 * first request waits for it.
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

  /** When the target was last called. */
  get calledAt(): number {
    return this.#calledAt;
  }

  /**
   * Returns the estimate that is compared. The silence of running calls is a lower bound for the
   * next response. A target that is not called appears faster with time, until a request tests it.
   * From that moment the estimate is the measured average again.
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
   * counts only if it exceeds the average. The speed of a failure says nothing.
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
