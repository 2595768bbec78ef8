// Adapts the number of concurrent calls to the delay that this process adds to a call. The delay is
// the time from the call's last hook until its row is durable and the call is about to be sent.
// While the delay is as short as usual, the limit does not restrict. When the delay grows, serving
// fewer calls concurrently is faster. Provider latency does not count: a thousand slow streams are
// no load.

const WINDOW_MS = 100;
/**
 * Delay in milliseconds that is never a reason to reject calls: other work on the machine can cause
 * it.
 */
const TOLERATED_DELAY_MS = 250;
/** A mean delay of more than this multiple of the baseline counts as slow. */
const SLOW_FACTOR = 3;
/**
 * How long the delay must stay high before the limit decreases, in milliseconds. A short burst is
 * slow too, but it is over by then.
 */
const SUSTAINED_MS = 1_000;
/** Growth of the baseline per window of `WINDOW_MS`: about a third per minute. */
const BASELINE_GROWTH = 1.0005;
const DECREASE_FACTOR = 0.8;
const INCREASE_FACTOR = 1.2;
/**
 * Growth of a limit that is not reached. It recovers slowly, because the lower value may also apply
 * to the next burst.
 */
const RECOVERY_FACTOR = 1.02;
/** Smallest limit in calls: every process can serve this many. */
export const MIN_LIMIT = 64;

export class AdaptiveLimit {
  #max: number;
  #limit: number;
  #baselineMs = Infinity;
  #sum = 0;
  #count = 0;
  #windowStart: number;
  /** Time of the first window in an uninterrupted run of slow windows. */
  #slowSince: number | undefined;

  constructor(most: number, now: number) {
    this.#max = this.#limit = most;
    this.#windowStart = now;
  }

  get current(): number {
    return this.#limit;
  }

  /** Changes the upper bound of the limit. */
  setMax(most: number): void {
    const was = this.#max;
    this.#max = most;
    this.#limit = this.#limit === was ? most : Math.min(this.#limit, most);
  }

  /** Records the delay that this process added to one call. */
  recordDuration(ms: number): void {
    this.#sum += ms;
    this.#count++;
  }

  /**
   * Evaluates the current window if it is over. `isLagging`: whether the whole process runs late.
   */
  update(now: number, running: number, isLagging: boolean): void {
    if (now - this.#windowStart < WINDOW_MS) return;
    this.#windowStart = now;
    const mean = this.#count > 0 ? this.#sum / this.#count : undefined;
    this.#sum = this.#count = 0;
    if (mean === undefined || !this.#isSlow(mean)) this.#slowSince = undefined;
    else this.#slowSince ??= now;
    if (isLagging || (this.#slowSince !== undefined && now - this.#slowSince >= SUSTAINED_MS))
      this.#limit = Math.max(
        Math.min(MIN_LIMIT, this.#max),
        Math.floor(Math.min(this.#limit, running) * DECREASE_FACTOR),
      );
    else {
      const isLimiting = running >= this.#limit * DECREASE_FACTOR;
      this.#limit = Math.min(
        this.#max,
        Math.ceil(this.#limit * (isLimiting ? INCREASE_FACTOR : RECOVERY_FACTOR)),
      );
    }
    if (mean !== undefined) this.#baselineMs = Math.min(mean, this.#baselineMs * BASELINE_GROWTH);
  }

  #isSlow(mean: number): boolean {
    return mean > Math.max(this.#baselineMs * SLOW_FACTOR, this.#baselineMs + TOLERATED_DELAY_MS);
  }
}
