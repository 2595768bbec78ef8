// Detects a batch that takes too long. One timer serves many batches: a timer per batch costs more,
// because Node creates and removes a list for it.

export class StallTimer {
  readonly #ms: number;
  readonly #onStall: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** When the current batch takes too long. Infinity: no batch is being processed. */
  #dueAt = Infinity;

  /** @param onStall Called whenever a batch has taken `ms` milliseconds more. */
  constructor(ms: number, onStall: () => void) {
    this.#ms = ms;
    this.#onStall = onStall;
  }

  /** Starts the time of a batch. */
  start(): void {
    this.#dueAt = performance.now() + this.#ms;
    if (!this.#timer) this.#timer = this.#arm(this.#ms);
  }

  /** Ends the time of the batch. The timer fires once more, and then waits for the next batch. */
  stop(): void {
    this.#dueAt = Infinity;
  }

  #arm(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#check(), ms).unref();
  }

  #check(): void {
    this.#timer = undefined;
    if (this.#dueAt === Infinity) return;
    const now = performance.now();
    const isDue = now >= this.#dueAt;
    if (isDue) this.#dueAt = now + this.#ms;
    this.#timer = this.#arm(this.#dueAt - now);
    if (isDue) this.#onStall();
  }
}
