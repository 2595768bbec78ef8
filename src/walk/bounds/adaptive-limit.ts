// How many calls may be under way at once. The measure is what this process itself adds to a call: the time from its last hook
// until its row is durable and it is about to be sent. While that is as short as ever the limit is out of the way; when it grows,
// fewer calls at once are served faster. How long providers take does not count: a thousand slow streams are no load.

const WINDOW_MS = 100;
/** A machine that is busy with other things delays calls by so much, and is no reason to refuse any. */
const SLACK_MS = 250;
/** So many times as long as usual is too long. */
const TIMES = 3;
/** Slow for so long: what comes all at once is slow too, and is through by then. */
const STANDS_MS = 1_000;
/** What is usual may grow: by a third in a minute. */
const DRIFT = 1.0005;
const LESS = 0.8;
const MORE = 1.2;
/** While there is room it goes back slowly: what was found out may hold for the next flood too. */
const BACK = 1.02;
/** In every process so many calls are possible. */
export const LEAST = 64;

export class AdaptiveLimit {
  #most: number;
  #limit: number;
  #usual = Infinity;
  #sum = 0;
  #count = 0;
  #since: number;
  /** Since when each window was slow. */
  #slow: number | undefined;

  constructor(most: number, now: number) {
    this.#most = this.#limit = most;
    this.#since = now;
  }

  get now(): number {
    return this.#limit;
  }

  /** Another highest one, from now on. */
  most(most: number): void {
    const was = this.#most;
    this.#most = most;
    this.#limit = this.#limit === was ? most : Math.min(this.#limit, most);
  }

  /** One call took so long here. */
  took(ms: number): void {
    this.#sum += ms;
    this.#count++;
  }

  /** Looks at the window that is over, if it is. `strained`: the process is late with all that it does. */
  look(now: number, running: number, strained: boolean): void {
    if (now - this.#since < WINDOW_MS) return;
    this.#since = now;
    const mean = this.#count > 0 ? this.#sum / this.#count : undefined;
    this.#sum = this.#count = 0;
    if (mean === undefined || !this.#isLong(mean)) this.#slow = undefined;
    else this.#slow ??= now;
    if (strained || (this.#slow !== undefined && now - this.#slow >= STANDS_MS))
      this.#limit = Math.max(
        Math.min(LEAST, this.#most),
        Math.floor(Math.min(this.#limit, running) * LESS),
      );
    else {
      const inTheWay = running >= this.#limit * LESS;
      this.#limit = Math.min(this.#most, Math.ceil(this.#limit * (inTheWay ? MORE : BACK)));
    }
    if (mean !== undefined) this.#usual = Math.min(mean, this.#usual * DRIFT);
  }

  #isLong(mean: number): boolean {
    return mean > Math.max(this.#usual * TIMES, this.#usual + SLACK_MS);
  }
}
