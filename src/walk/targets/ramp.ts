// A target that comes back is not asked by all at once that waited for it: for a while it gets little more than it had before.

const LASTS_MS = 30_000;
const GROWS_EVERY_MS = 15_000;
const GROWTH = 1.2;
const SAVED_MS = 100;
/** Calls a second that are always let through. */
const LEAST = 5;

export class Ramp {
  active = false;
  /** What it had before, in calls a second; 0: not known. */
  #pace = 0;
  #began = 0;
  #filled = 0;
  /** Calls that may be let through. */
  #room = 0;

  begin(now: number, pace: number): void {
    this.active = true;
    this.#began = this.#filled = now;
    this.#pace = pace;
    this.#room = 1;
  }

  get until(): number {
    return this.#began + LASTS_MS;
  }

  lasts(now: number): boolean {
    return !this.#over(now);
  }

  end(): void {
    this.active = false;
  }

  /** Whether one more is let through now. */
  pass(now: number): boolean {
    if (this.#over(now)) return true;
    this.#fill(now);
    if (this.#room < 1) return false;
    this.#room--;
    return true;
  }

  /** One more was let through all the same: the next ones have to wait for longer. */
  took(now: number): void {
    if (this.#over(now)) return;
    this.#fill(now);
    this.#room = Math.max(-this.#pace, this.#room - 1);
  }

  /** Whether none would be let through. */
  full(now: number): boolean {
    if (this.#over(now)) return false;
    this.#fill(now);
    return this.#room < 1;
  }

  /** Little is saved up, so that a second's calls do not all come in its first moment. */
  #fill(now: number): void {
    const passed = now - this.#began;
    const aSecond =
      this.#pace > 0
        ? Math.max(LEAST, this.#pace * GROWTH ** (1 + Math.floor(passed / GROWS_EVERY_MS)))
        : LEAST * 2 ** Math.floor(passed / 1_000);
    const most = Math.max(1, (aSecond * SAVED_MS) / 1_000);
    this.#room = Math.min(most, this.#room + (aSecond * (now - this.#filled)) / 1_000);
    this.#filled = now;
  }

  #over(now: number): boolean {
    if (now - this.#began >= LASTS_MS) this.active = false;
    return !this.active;
  }
}
