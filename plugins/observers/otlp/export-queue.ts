// What waits to be sent, with a bound: one batch at a time is under way, and what comes when there is no room is lost and counted.
import type { BatchItems } from "./batch-items.ts";

export interface ExportQueueOptions {
  /** How many may wait. */
  readonly maxQueued: number;
  /** How many go at once. */
  readonly batchSize: number;
  /** How long the first of a batch may wait for others. */
  readonly delayMs: number;
}

export interface ExportCounts {
  sent: number;
  /** There was no room for them, or they were given up. */
  dropped: number;
}

export interface BatchExporter {
  createBatch(): BatchItems;
  /** How many of these were taken. Never rejects. */
  send(items: BatchItems): Promise<number>;
}

/** As many as a burst fills while one is under way. */
const MAX_SPARE_BATCHES = 4;

export class ExportQueue {
  readonly #options: ExportQueueOptions;
  readonly #exporter: BatchExporter;
  readonly #counts: ExportCounts;
  /** The first goes next; the last may have room. */
  #queued: BatchItems[] = [];
  #queuedCount = 0;
  /** Those that have gone are written anew: a block as long as a batch, made for each, is what full collections are made for. */
  readonly #spare: BatchItems[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;

  constructor(of: ExportQueueOptions, counts: ExportCounts, to: BatchExporter) {
    this.#options = of;
    this.#counts = counts;
    this.#exporter = to;
  }

  get waiting(): number {
    return this.#queuedCount;
  }

  /** So many that belong together: all of them, or none. `say` says each into what `next` gives it. */
  add(many: number, say: (next: () => BatchItems) => void): void {
    const { maxQueued, batchSize, delayMs } = this.#options;
    if (this.#queuedCount + many > maxQueued) {
      this.#counts.dropped += many;
      return;
    }
    try {
      say(this.#batchForNext);
      this.#queuedCount += many;
    } catch (problem) {
      // Some of them may have been said.
      this.#queuedCount = this.#queued.reduce((sum, { count }) => sum + count, 0);
      throw problem;
    }
    if (this.#queuedCount >= batchSize) void this.#sendSoon();
    else this.#timer ??= setTimeout(() => void this.#sendSoon(), delayMs).unref();
  }

  readonly #batchForNext = (): BatchItems => {
    const last = this.#queued.at(-1);
    if (last && last.count < this.#options.batchSize) return last;
    const more = this.#spare.pop() ?? this.#exporter.createBatch();
    this.#queued.push(more);
    return more;
  };

  /** Resolves when nothing waits any more. */
  async flush(): Promise<void> {
    while (this.#sending || this.#queuedCount > 0) await this.#sendSoon();
  }

  /** What is still here is lost. */
  abandon(): void {
    clearTimeout(this.#timer);
    this.#counts.dropped += this.#queuedCount;
    this.#queuedCount = 0;
    this.#queued = [];
  }

  #sendSoon(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return (this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined)));
  }

  async #sendAll(): Promise<void> {
    do {
      const items = this.#queued.shift();
      if (!items) return;
      const { count } = items;
      this.#queuedCount -= count;
      const taken = await this.#exporter.send(items);
      this.#counts.sent += taken;
      this.#counts.dropped += count - taken;
      items.clear();
      if (this.#spare.length < MAX_SPARE_BATCHES) this.#spare.push(items);
      // What is less than a batch waits for others again.
    } while (this.#queuedCount >= this.#options.batchSize);
    if (this.#queuedCount > 0)
      this.#timer ??= setTimeout(() => void this.#sendSoon(), this.#options.delayMs).unref();
  }
}
