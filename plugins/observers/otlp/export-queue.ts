// A bounded queue of items to export. One batch is sent at a time. Items that do not fit are
// dropped and counted.
import type { ItemBatch } from "./message-envelope.ts";

export interface ExportQueueOptions {
  /** Maximum number of queued items. */
  readonly maxQueued: number;
  /** Maximum number of items in a batch. */
  readonly batchSize: number;
  /** Maximum time that the first item of a batch waits for more. */
  readonly delayMs: number;
}

export interface ExportCounts {
  sent: number;
  /** Items that did not fit into the queue or could not be delivered. */
  dropped: number;
}

export interface BatchExporter {
  createBatch(): ItemBatch;
  /** Sends a batch and returns the number of accepted items. Never rejects. */
  send(items: ItemBatch): Promise<number>;
}

/** Number of batches that a burst fills while one is being sent. */
const MAX_SPARE_BATCHES = 4;

export class ExportQueue {
  readonly #options: ExportQueueOptions;
  readonly #exporter: BatchExporter;
  readonly #counts: ExportCounts;
  /** Queued batches. The first one is sent next; the last one may have room. */
  #queued: ItemBatch[] = [];
  #queuedCount = 0;
  /**
   * Sent batches for reuse. Allocating a large block per batch would cause full garbage
   * collections.
   */
  readonly #spare: ItemBatch[] = [];
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

  /**
   * Adds items that belong together: all of them, or none if they do not fit. `say` writes each
   * item to the batch that `next` returns.
   */
  add(many: number, say: (next: () => ItemBatch) => void): void {
    const { maxQueued, batchSize, delayMs } = this.#options;
    if (this.#queuedCount + many > maxQueued) {
      this.#counts.dropped += many;
      return;
    }
    try {
      say(this.#batchForNext);
      this.#queuedCount += many;
    } catch (problem) {
      // Some of the items may already be complete.
      this.#queuedCount = this.#queued.reduce((sum, { count }) => sum + count, 0);
      throw problem;
    }
    if (this.#queuedCount >= batchSize) void this.#sendSoon();
    else this.#timer ??= setTimeout(() => void this.#sendSoon(), delayMs).unref();
  }

  readonly #batchForNext = (): ItemBatch => {
    const last = this.#queued.at(-1);
    if (last && last.count < this.#options.batchSize) return last;
    const more = this.#spare.pop() ?? this.#exporter.createBatch();
    this.#queued.push(more);
    return more;
  };

  /** Resolves when the queue is empty. */
  async flush(): Promise<void> {
    while (this.#sending || this.#queuedCount > 0) await this.#sendSoon();
  }

  /** Drops all queued items. */
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
      // An incomplete batch waits for more items again.
    } while (this.#queuedCount >= this.#options.batchSize);
    if (this.#queuedCount > 0)
      this.#timer ??= setTimeout(() => void this.#sendSoon(), this.#options.delayMs).unref();
  }
}
