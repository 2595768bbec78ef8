// How many calls may be under way at once. The measure is what this process itself adds to a call: the time from its last hook
// until its row is durable and it is about to be sent. While that is as short as ever the limit is out of the way; when it grows,
// fewer calls at once are served faster. How long providers take does not count: a thousand slow streams are no load.

const WINDOW_MS = 100;
/** A machine that is busy with other things delays calls by so much, and is no reason to refuse any. */
const TOLERATED_DELAY_MS = 250;
/** So many times as long as usual is too long. */
const SLOW_FACTOR = 3;
/** Slow for so long: what comes all at once is slow too, and is through by then. */
const SUSTAINED_MS = 1_000;
/** What is usual may grow: by a third in a minute. */
const BASELINE_GROWTH = 1.0005;
const DECREASE_FACTOR = 0.8;
const INCREASE_FACTOR = 1.2;
/** While there is room it goes back slowly: what was found out may hold for the next flood too. */
const RECOVERY_FACTOR = 1.02;
/** In every process so many calls are possible. */
export const MIN_LIMIT = 64;

export class AdaptiveLimit {
  #max: number;
  #limit: number;
  #baselineMs = Infinity;
  #sum = 0;
  #count = 0;
  #windowStart: number;
  /** Since when each window was slow. */
  #slowSince: number | undefined;

  constructor(most: number, now: number) {
    this.#max = this.#limit = most;
    this.#windowStart = now;
  }

  get current(): number {
    return this.#limit;
  }

  /** Another highest one, from now on. */
  setMax(most: number): void {
    const was = this.#max;
    this.#max = most;
    this.#limit = this.#limit === was ? most : Math.min(this.#limit, most);
  }

  /** One call took so long here. */
  recordDuration(ms: number): void {
    this.#sum += ms;
    this.#count++;
  }

  /** Looks at the window that is over, if it is. `strained`: the process is late with all that it does. */
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
