// Group commit, self-clocking: one batch is in flight, and what was queued meanwhile is the next one. Nothing lingers:
// under load batches grow, alone an item goes at once.

/** All that sockets and processes which are ready now ask for comes first; when there is nothing, this takes no time. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Runs steps one after the other while there is work. A step never throws. */
export class Batches {
  #running = false;
  readonly #idle: () => boolean;
  readonly #step: () => Promise<void>;

  constructor(idle: () => boolean, step: () => Promise<void>) {
    this.#idle = idle;
    this.#step = step;
  }

  /** There may be work now. */
  wake(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#idle()) await this.#step();
    this.#running = false;
  }
}
