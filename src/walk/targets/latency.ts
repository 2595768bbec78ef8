// How long one target takes until its first content, as far as that is known now. It has no timer and reads no clock: every `now` is
// the monotonic one, in milliseconds.

/** What was seen so long ago counts half as much, and so does an estimate that nothing has renewed for so long. */
const HALF_MS = 10_000;
/** A new measurement counts for so much at least, however many there are in a second. */
const LEAST_NEW = 0.1;
/**
 * An estimate that fades brings one request to a slow target. It fades no faster than with so many requests for one half, so that
 * where there are few requests, few of them go and see.
 */
const PASSES = 25;
/** What was never measured and is asked right now is waited for by that request alone. */
const UNKNOWN_MS = 1e9;

export class Latency {
  /** Undefined: never measured. */
  #ms: number | undefined;
  #measured = 0;
  #asked = 0;
  #passed = 0;
  /** Calls that have brought no content yet, and since when none has brought any. */
  #waiting = 0;
  #silentSince = 0;

  /** A moving average of what was measured; undefined: nothing was. */
  get ms(): number | undefined {
    return this.#ms;
  }

  /** When it was asked last. */
  get asked(): number {
    return this.#asked;
  }

  /**
   * What is compared. Silence under way is the least that the next answer takes. What is not asked seems faster with time, until a
   * request goes to see: from that moment on it is as slow as it was.
   */
  reckoned(now: number): number {
    const silence = this.#waiting > 0 ? now - this.#silentSince : 0;
    if (this.#ms === undefined) return this.#waiting > 0 ? UNKNOWN_MS + silence : 0;
    const halves = Math.min((now - this.#asked) / HALF_MS, this.#passed / PASSES);
    return Math.max(this.#ms * 2 ** -halves, silence);
  }

  begins(now: number): void {
    this.#asked = now;
    this.#passed = 0;
    if (this.#waiting++ === 0) this.#silentSince = now;
  }

  /** Another was asked in its place. */
  passed(): void {
    this.#passed++;
  }

  /** `ms`: from its call's beginning to its first content. */
  answered(now: number, ms: number): void {
    this.#silentSince = now;
    this.#waiting--;
    this.#take(now, ms);
  }

  /** A call is over that has brought no content: it would have taken so long at least. How fast something fails says nothing. */
  ended(now: number, ms: number): void {
    this.#waiting--;
    if (this.#ms !== undefined && ms > this.#ms) this.#take(now, ms);
  }

  #take(now: number, ms: number): void {
    const kept = Math.min(1 - LEAST_NEW, 2 ** ((this.#measured - now) / HALF_MS));
    this.#ms = this.#ms === undefined ? ms : this.#ms * kept + ms * (1 - kept);
    this.#measured = now;
  }
}
