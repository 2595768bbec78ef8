// Summing up gives way to calls that wait for a commit: it waits for a second in which little is written, and not for ever.

/** Commands that are worth it; and after which it is time, whatever there is to do. */
const WORTH = 32_768;
const MOST = 524_288;
/** So many in a second are little. */
const LITTLE = 4_096;

export class Lull {
  readonly #sum: () => Promise<void>;
  #behind = 0;
  #waiting: NodeJS.Timeout | undefined;

  /** `sum`: without it reports take longer, and that is all. */
  constructor(sum: () => Promise<void>) {
    this.#sum = sum;
  }

  written(commands: number): void {
    if ((this.#behind += commands) >= WORTH && !this.#waiting) this.#wait();
  }

  end(): void {
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
  }

  #wait(): void {
    const before = this.#behind;
    this.#waiting = setTimeout(() => {
      this.#waiting = undefined;
      if (this.#behind - before > LITTLE && this.#behind < MOST) return this.#wait();
      this.#behind = 0;
      this.#sum().catch(() => {});
    }, 1_000).unref();
  }
}
