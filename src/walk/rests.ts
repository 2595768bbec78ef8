/** Who is given a rest after a failure: candidates that rest are tried last, never dropped. */
export class Rests {
  readonly #until = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  rest(key: string, ms: number): void {
    const until = this.#now() + ms;
    if (until > (this.#until.get(key) ?? 0)) this.#until.set(key, until);
    if (this.#until.size > 10_000) this.#sweep();
  }

  /** It answered: whatever it rested for is over. */
  clear(key: string): void {
    if (this.#until.size > 0) this.#until.delete(key);
  }

  resting(key: string): boolean {
    if (this.#until.size === 0) return false;
    const until = this.#until.get(key);
    if (until === undefined) return false;
    if (until > this.#now()) return true;
    this.#until.delete(key);
    return false;
  }

  /** For `status`: what rests, and until when. */
  list(): { key: string; until: number }[] {
    this.#sweep();
    return [...this.#until].map(([key, until]) => ({ key, until }));
  }

  #sweep(): void {
    const now = this.#now();
    for (const [key, until] of this.#until) if (until <= now) this.#until.delete(key);
  }
}
