// Group commit without a timer: one batch is in flight, and the items that are queued during it
// form the next batch. Batches grow under load, and a single item is processed immediately.

/**
 * Resolves after all sockets and processes that are ready now have added their commands. Takes no
 * time if none are ready.
 */
export const afterPendingIo = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Runs steps one after another while there is work. A step must not throw. */
export class BatchLoop {
  #running = false;
  readonly #isIdle: () => boolean;
  readonly #step: () => Promise<void>;

  constructor(idle: () => boolean, step: () => Promise<void>) {
    this.#isIdle = idle;
    this.#step = step;
  }

  /** Starts the loop if it is not running. Call it after adding work. */
  wake(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#isIdle()) await this.#step();
    this.#running = false;
  }
}
