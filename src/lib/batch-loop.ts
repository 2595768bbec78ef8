// Group commit, self-clocking: one batch is in flight, and what was queued meanwhile is the next one. Nothing lingers:
// under load batches grow, alone an item goes at once.

/** Lets all sockets and processes that are ready now add their commands first. It takes no time when there are none. */
export const afterPendingIo = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Runs steps one after the other while there is work. A step never throws. */
export class BatchLoop {
  #running = false;
  readonly #isIdle: () => boolean;
  readonly #step: () => Promise<void>;

  constructor(idle: () => boolean, step: () => Promise<void>) {
    this.#isIdle = idle;
    this.#step = step;
  }

  /** There may be work now. */
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
