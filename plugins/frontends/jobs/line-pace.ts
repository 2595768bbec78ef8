// Limits how many lines this process sends at the same time, and how many per minute, over all
// batches. Lines wait in their order.

export interface PaceOptions {
  readonly perMinute: number;
  readonly concurrent: number;
}

/** Ends a turn. Called once. */
export type EndTurn = () => void;

export class LinePace {
  readonly #intervalMs: number;
  readonly #concurrent: number;
  readonly #waiting = new Set<() => void>();
  #running = 0;
  #nextAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ perMinute, concurrent }: PaceOptions) {
    this.#intervalMs = 60_000 / perMinute;
    this.#concurrent = concurrent;
  }

  /**
   * Waits for the turn of a line. Resolves to undefined if the signal aborts before, or at this time
   * in Unix milliseconds.
   */
  take(signal: AbortSignal, until = Infinity): Promise<EndTurn | undefined> {
    const { promise, resolve } = Promise.withResolvers<EndTurn | undefined>();
    const stop = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      this.#waiting.delete(start);
    };
    const giveUp = () => {
      stop();
      resolve(undefined);
    };
    const start = () => {
      stop();
      resolve(this.#begin());
    };
    const timer =
      until === Infinity ? undefined : setTimeout(giveUp, Math.max(0, until - Date.now()));
    this.#waiting.add(start);
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
    this.#serve();
    return promise;
  }

  #begin(): EndTurn {
    this.#running++;
    this.#nextAt = Math.max(Date.now(), this.#nextAt) + this.#intervalMs;
    return () => {
      this.#running--;
      this.#serve();
    };
  }

  /** Starts the lines whose turn has come. */
  #serve(): void {
    clearTimeout(this.#timer);
    for (const start of this.#waiting) {
      if (this.#running >= this.#concurrent) return;
      const waitMs = this.#nextAt - Date.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#serve(), waitMs).unref();
        return;
      }
      start();
    }
  }
}
