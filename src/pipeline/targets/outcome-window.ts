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
