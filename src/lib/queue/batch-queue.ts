// A bounded queue whose items are delivered in batches, one batch at a time.
import { BatchLoop, type BatchSchedule } from "./batch-loop.ts";
import { BoundedQueue, type QueueLimits } from "./bounded-queue.ts";

/** Limits of a batch queue, and how its items are delivered. */
export interface BatchQueueOptions<T> extends QueueLimits<T>, BatchSchedule {
  /** Maximum number of items in a batch. Default: no limit. */
  readonly batchItems?: number | undefined;
  /** Maximum size of a batch, as reported by `sizeOf`. Default: no limit. */
  readonly batchBytes?: number | undefined;
  /**
   * The queue that holds the items, if the items must be kept after this object is disposed of, for
   * example in `ctx.shared`. The limits of that queue apply. Default: a new queue.
   */
  readonly queue?: BoundedQueue<T> | undefined;
  /**
   * Delivers a batch. The next batch waits until the promise resolves. Items that the promise
   * resolves with are put back and delivered again. If it throws or rejects, the batch is dropped.
   */
  deliver(batch: T[]): Promise<readonly T[] | void> | void;
}

/** Number of items by outcome. */
export interface BatchQueueCounts {
  /** Items that wait for their batch. */
  readonly queued: number;
  /** Items whose delivery succeeded. */
  readonly delivered: number;
  /** Items that did not fit, and items whose delivery failed. */
  readonly dropped: number;
}

/** Collects items and delivers them in batches. */
export class BatchQueue<T> {
  readonly #options: BatchQueueOptions<T>;
  readonly #queue: BoundedQueue<T>;
  readonly #loop: BatchLoop;
  #delivered = 0;
  #failed = 0;

  constructor(options: BatchQueueOptions<T>) {
    this.#options = options;
    this.#queue = options.queue ?? new BoundedQueue(options);
    this.#loop = new BatchLoop(
      { pending: () => this.#queue.length, step: () => this.#deliver() },
      options,
    );
  }

  /** Adds an item. Returns false if the item was dropped. */
  push(item: T): boolean {
    const isQueued = this.#queue.push(item);
    this.#loop.wake();
    return isQueued;
  }

  /** Current counts. */
  get counts(): BatchQueueCounts {
    return {
      queued: this.#queue.length,
      delivered: this.#delivered,
      dropped: this.#queue.dropped + this.#failed,
    };
  }

  /**
   * Resolves when the current batch has been delivered, if the queue is full. Undefined if the
   * queue is not full.
   */
  whenRoom(): Promise<void> | undefined {
    if (!this.#queue.isFull) return undefined;
    return this.#loop.current ?? this.drain().then(() => {});
  }

  /**
   * Delivers all items now. Resolves with true when no item is left, and with false when the time
   * limit is reached or the queue is stopped.
   */
  drain(withinMs?: number): Promise<boolean> {
    return this.#loop.drain(withinMs);
  }

  /** Delivers no more batches. */
  stop(): void {
    this.#loop.stop();
  }

  #deliver(): Promise<void> | void {
    const { batchItems, batchBytes, deliver } = this.#options;
    const batch = this.#queue.take(batchItems, batchBytes);
    const { length } = batch;
    try {
      const done = deliver(batch);
      if (done) return this.#settle(length, done);
      this.#delivered += length;
    } catch {
      this.#failed += length;
    }
  }

  async #settle(length: number, done: Promise<readonly T[] | void>): Promise<void> {
    try {
      const again = (await done) ?? [];
      this.#queue.putBack(again);
      this.#delivered += length - again.length;
    } catch {
      this.#failed += length;
    }
  }
}
