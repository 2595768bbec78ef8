// Group commit, self-clocking: one batch is in flight, and what was queued meanwhile is the next one. A batch is sent when
// a turn of the loop brings nothing more: alone an item goes at once, and a process that is busy sends few large batches, because
// each wakes another thread, which costs more than the items in it.

/** Lets all sockets and processes that are ready now have their turn first. It takes no time when there are none. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A batch of so many is not waited with, */
const ENOUGH = 64;
/** nor one that has been gathered for so long. */
const LONGEST_MS = 1;

/** Waits as long as each turn brings more. `size`: of what there is. */
export const gathered = (
  size: () => number,
  clock: () => number = () => performance.now(),
): Promise<void> =>
  new Promise((resolve) => {
    const began = clock();
    let before = size();
    const look = (): void => {
      const now = size();
      if (now === before || now >= ENOUGH || clock() - began >= LONGEST_MS) return resolve();
      before = now;
      setImmediate(look);
    };
    setImmediate(look);
  });

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
