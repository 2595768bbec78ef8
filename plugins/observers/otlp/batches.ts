// What waits to be sent, with a bound: one batch at a time is under way, and what comes when there is no room is lost and counted.
import type { Items } from "./items.ts";

export interface BatchOptions {
  /** How many may wait. */
  readonly queue: number;
  /** How many go at once. */
  readonly batch: number;
  /** How long the first of a batch may wait for others. */
  readonly delayMs: number;
}

export interface BatchCounts {
  sent: number;
  /** There was no room for them, or they were given up. */
  dropped: number;
}

export interface BatchTarget {
  empty(): Items;
  /** How many of these were taken. Never rejects. */
  send(items: Items): Promise<number>;
}

/** As many as a burst fills while one is under way. */
const SPARE = 4;

export class Batches {
  readonly #of: BatchOptions;
  readonly #to: BatchTarget;
  readonly #counts: BatchCounts;
  /** The first goes next; the last may have room. */
  #waiting: Items[] = [];
  #count = 0;
  /** Those that have gone are written anew: a block as long as a batch, made for each, is what full collections are made for. */
  readonly #spare: Items[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;

  constructor(of: BatchOptions, counts: BatchCounts, to: BatchTarget) {
    this.#of = of;
    this.#counts = counts;
    this.#to = to;
  }

  get waiting(): number {
    return this.#count;
  }

  /** So many that belong together: all of them, or none. `say` says each into what `next` gives it. */
  add(many: number, say: (next: () => Items) => void): void {
    const { queue, batch, delayMs } = this.#of;
    if (this.#count + many > queue) {
      this.#counts.dropped += many;
      return;
    }
    try {
      say(this.#next);
      this.#count += many;
    } catch (problem) {
      // Some of them may have been said.
      this.#count = this.#waiting.reduce((sum, { count }) => sum + count, 0);
      throw problem;
    }
    if (this.#count >= batch) void this.#go();
    else this.#timer ??= setTimeout(() => void this.#go(), delayMs).unref();
  }

  readonly #next = (): Items => {
    const last = this.#waiting.at(-1);
    if (last && last.count < this.#of.batch) return last;
    const more = this.#spare.pop() ?? this.#to.empty();
    this.#waiting.push(more);
    return more;
  };

  /** Resolves when nothing waits any more. */
  async flush(): Promise<void> {
    while (this.#sending || this.#count > 0) await this.#go();
  }

  /** What is still here is lost. */
  abandon(): void {
    clearTimeout(this.#timer);
    this.#counts.dropped += this.#count;
    this.#count = 0;
    this.#waiting = [];
  }

  #go(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return (this.#sending ??= this.#all().finally(() => (this.#sending = undefined)));
  }

  async #all(): Promise<void> {
    do {
      const items = this.#waiting.shift();
      if (!items) return;
      const { count } = items;
      this.#count -= count;
      const taken = await this.#to.send(items);
      this.#counts.sent += taken;
      this.#counts.dropped += count - taken;
      items.clear();
      if (this.#spare.length < SPARE) this.#spare.push(items);
      // What is less than a batch waits for others again.
    } while (this.#count >= this.#of.batch);
    if (this.#count > 0)
      this.#timer ??= setTimeout(() => void this.#go(), this.#of.delayMs).unref();
  }
}
