// What waits to be sent, with a bound: one batch at a time is under way, and what comes when there is no room is lost and counted.
import type { Message } from "./protobuf.ts";

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

/** How many of these were taken. Never rejects. */
export type Send = (items: readonly Message[]) => Promise<number>;

export class Batches {
  readonly #of: BatchOptions;
  readonly #send: Send;
  readonly #counts: BatchCounts;
  #items: Message[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;

  constructor(of: BatchOptions, counts: BatchCounts, send: Send) {
    this.#of = of;
    this.#counts = counts;
    this.#send = send;
  }

  get waiting(): number {
    return this.#items.length;
  }

  /** Those that belong together come together: all of them, or none. */
  add(items: readonly Message[]): void {
    const { queue, batch, delayMs } = this.#of;
    if (this.#items.length + items.length > queue) {
      this.#counts.dropped += items.length;
      return;
    }
    this.#items.push(...items);
    if (this.#items.length >= batch) void this.#go();
    else this.#timer ??= setTimeout(() => void this.#go(), delayMs).unref();
  }

  /** Resolves when nothing waits any more. */
  async flush(): Promise<void> {
    while (this.#sending || this.#items.length > 0) await this.#go();
  }

  /** What is still here is lost. */
  abandon(): void {
    clearTimeout(this.#timer);
    this.#counts.dropped += this.#items.splice(0).length;
  }

  #go(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return (this.#sending ??= this.#all().finally(() => (this.#sending = undefined)));
  }

  async #all(): Promise<void> {
    do {
      const items = this.#items.splice(0, this.#of.batch);
      if (items.length === 0) return;
      const taken = await this.#send(items);
      this.#counts.sent += taken;
      this.#counts.dropped += items.length - taken;
      // What is less than a batch waits for others again.
    } while (this.#items.length >= this.#of.batch);
    if (this.#items.length > 0)
      this.#timer ??= setTimeout(() => void this.#go(), this.#of.delayMs).unref();
  }
}
