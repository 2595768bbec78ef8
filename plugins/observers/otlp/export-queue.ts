// A bounded queue of items to export. One batch is sent at a time. Items that do not fit are
// dropped and counted. It does not use `BoundedQueue`, because items are encoded when they are
// added: objects that wait for their batch would survive garbage collections.
import { BatchLoop } from "tollgate/plugin";
import type { ItemBatch } from "./message-envelope.ts";

export interface ExportQueueOptions {
  /** Maximum number of queued items. */
  readonly maxQueued: number;
  /** Maximum number of items in a batch. */
  readonly batchSize: number;
  /** Maximum time that the first item of a batch waits for more items. */
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
  /** Queued batches. The first batch is sent next. The last batch may have free space. */
  #queued: ItemBatch[] = [];
  #queuedCount = 0;
  /**
   * Batches that were sent, for reuse. Allocating a large block per batch would cause full garbage
   * collections.
   */
  readonly #spare: ItemBatch[] = [];
  readonly #loop: BatchLoop;

  constructor(of: ExportQueueOptions, counts: ExportCounts, to: BatchExporter) {
    this.#options = of;
    this.#counts = counts;
    this.#exporter = to;
    this.#loop = new BatchLoop(
      { pending: () => this.#queuedCount, step: () => this.#sendNext() },
      { delayMs: of.delayMs, fullAt: of.batchSize },
    );
  }

  get waiting(): number {
    return this.#queuedCount;
  }

  /**
   * Adds items that belong together: either all items or, if they do not fit, no item. `say` writes
   * each item to the batch that `next` returns.
   */
  add(many: number, say: (next: () => ItemBatch) => void): void {
    if (this.#queuedCount + many > this.#options.maxQueued) {
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
    this.#loop.wake();
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
    await this.#loop.drain();
  }

  /** Drops all queued items. */
  abandon(): void {
    this.#loop.stop();
    this.#counts.dropped += this.#queuedCount;
    this.#queuedCount = 0;
    this.#queued = [];
  }

  async #sendNext(): Promise<void> {
    const items = this.#queued.shift()!;
    const { count } = items;
    this.#queuedCount -= count;
    const taken = await this.#exporter.send(items);
    this.#counts.sent += taken;
    this.#counts.dropped += count - taken;
    items.clear();
    if (this.#spare.length < MAX_SPARE_BATCHES) this.#spare.push(items);
  }
}
