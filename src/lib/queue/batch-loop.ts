// Decides when waiting work is processed: one batch at a time. Work that arrives during a batch is
// processed in the next batch, so batches grow under load.
import { settlesWithin } from "../time/settles-within.ts";

/** Determines when batches are processed. */
export interface BatchSchedule {
  /**
   * Time for which the first item of a batch waits for more items, in milliseconds. `0`: until the
   * event loop has processed all pending I/O, so that all sockets and processes that are ready can
   * add their items. Default: no wait, so an idle loop processes an item within `wake`.
   */
  readonly delayMs?: number | undefined;
  /**
   * Number of items above which a batch waits only for the current event loop turn. Default: no
   * number.
   */
  readonly fullAt?: number | undefined;
  /**
   * Start of the delay. `last_batch`: the delay starts with the previous batch, so the first item
   * after a pause does not wait. Default: `first_item`.
   */
  readonly delayFrom?: "first_item" | "last_batch" | undefined;
}

/** The work of a loop. */
export interface BatchWork {
  /** Returns the number of waiting items. */
  pending(): number;
  /** Processes one batch. The next batch waits for the promise, which must not reject. */
  step(): Promise<void> | void;
}

/** Processes batches one after the other while there is work. */
export class BatchLoop {
  readonly #work: BatchWork;
  readonly #delayMs: number | undefined;
  readonly #fullAt: number;
  readonly #leads: boolean;
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #running: Promise<void> | undefined;
  #isInStep = false;
  #isStopped = false;
  /** Number of calls of `drain` that wait. Incomplete batches are then processed as well. */
  #draining = 0;
  #lastBatchAt = -Infinity;

  constructor(work: BatchWork, { delayMs, fullAt = Infinity, delayFrom }: BatchSchedule = {}) {
    this.#work = work;
    this.#delayMs = delayMs;
    this.#fullAt = fullAt;
    this.#leads = delayFrom === "last_batch";
  }

  /** Resolves when the current batch is processed. Undefined if no batch is being processed. */
  get current(): Promise<void> | undefined {
    return this.#running;
  }

  /** Schedules a batch. Call it after adding an item. */
  wake(): void {
    if (this.#running || this.#isInStep || this.#isStopped) return;
    const pending = this.#work.pending();
    if (pending === 0) return;
    if (this.#delayMs === undefined) return this.#run();
    const wait = this.#leads
      ? this.#lastBatchAt + this.#delayMs - performance.now()
      : this.#delayMs;
    if (wait <= 0 || pending >= this.#fullAt) this.#immediate ??= setImmediate(() => this.#run());
    // The timer is not canceled when a full batch is processed. Setting a timer per batch would
    // cost more than a batch that is occasionally processed early.
    else this.#timer ??= setTimeout(() => this.#onTimer(), wait).unref();
  }

  #onTimer(): void {
    this.#timer = undefined;
    if (!this.#running && !this.#isStopped) this.#run();
  }

  /** Processes batches until too few items are left or a batch is asynchronous. */
  #run(): void {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    let isFirst = true;
    this.#isInStep = true;
    try {
      while (!this.#isStopped && this.#shouldContinue(isFirst)) {
        isFirst = false;
        const done = this.#work.step();
        if (this.#leads) this.#lastBatchAt = performance.now();
        if (done) {
          this.#running = done.then(() => this.#resume());
          return;
        }
      }
    } finally {
      this.#isInStep = false;
    }
    if (!isFirst) this.wake();
  }

  #shouldContinue(isFirst: boolean): boolean {
    const pending = this.#work.pending();
    if (isFirst || this.#draining > 0 || this.#delayMs === undefined) return pending > 0;
    return pending >= this.#fullAt;
  }

  #resume(): void {
    this.#running = undefined;
    if (this.#draining > 0) this.#run();
    else this.wake();
  }

  /**
   * Processes all items immediately, without delays. Resolves with true when no item is left, and
   * with false when the time limit is reached or the loop is stopped. If all batches are
   * synchronous, they are processed before this method returns.
   */
  async drain(withinMs = Infinity): Promise<boolean> {
    this.#draining++;
    try {
      return (await settlesWithin(withinMs, this.#runAll())) && !this.#isStopped;
    } finally {
      this.#draining--;
    }
  }

  async #runAll(): Promise<void> {
    while (!this.#isStopped && (this.#running || this.#work.pending() > 0)) {
      if (!this.#running) this.#run();
      if (this.#running) await this.#running;
    }
  }

  /** Processes no more batches. The current batch is completed. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
  }
}
