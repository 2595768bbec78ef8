// How long one target takes until its first content, as far as that is known now. It has no timer and reads no clock: every `now` is
// the monotonic one, in milliseconds.

/** What was seen so long ago counts half as much, and so does an estimate that nothing has renewed for so long. */
const HALF_LIFE_MS = 10_000;
/** A new measurement counts for so much at least, however many there are in a second. */
const MIN_NEW_WEIGHT = 0.1;
/**
 * An estimate that fades brings one request to a slow target. It fades no faster than with so many requests for one half, so that
 * where there are few requests, few of them go and see.
 */
const SKIPS_PER_HALVING = 25;
/** What was never measured and is asked right now is waited for by that request alone. */
const UNMEASURED_MS = 1e9;

export class Latency {
  /** Undefined: never measured. */
  #averageMs: number | undefined;
  #measuredAt = 0;
  #calledAt = 0;
  #skips = 0;
  /** Calls that have brought no content yet, and since when none has brought any. */
  #waiting = 0;
  #silentSince = 0;

  /** A moving average of what was measured; undefined: nothing was. */
  get averageMs(): number | undefined {
    return this.#averageMs;
  }

  /** When it was asked last. */
  get calledAt(): number {
    return this.#calledAt;
  }

  /**
   * What is compared. Silence under way is the least that the next answer takes. What is not asked seems faster with time, until a
   * request goes to see: from that moment on it is as slow as it was.
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

  /** Another was asked in its place. */
  recordSkip(): void {
    this.#skips++;
  }

  /** `ms`: from its call's beginning to its first content. */
  recordFirstToken(now: number, ms: number): void {
    this.#silentSince = now;
    this.#waiting--;
    this.#addMeasurement(now, ms);
  }

  /** A call is over that has brought no content: it would have taken so long at least. How fast something fails says nothing. */
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
