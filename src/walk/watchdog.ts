// One coarse timer for all open calls: a timer or a signal per request costs more than the request's own work.

export interface Watched {
  /** Called once a tick while watched. `now` is the monotonic clock in milliseconds. */
  tick(now: number): void;
  /** What became of a tick that threw; it is not watched any longer. */
  broke?(problem: unknown): void;
}

const EVERY_MS = 250;

export class Watchdog implements Disposable {
  readonly #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;
  /** The monotonic clock, as of the last tick: good enough for deadlines, free to read. */
  now = performance.now();

  watch(what: Watched): void {
    this.#watched.add(what);
    if (this.#timer) return;
    this.now = performance.now();
    this.#timer = setInterval(() => {
      this.now = performance.now();
      for (const w of this.#watched) this.#tick(w);
      if (this.#watched.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
      }
    }, EVERY_MS);
    this.#timer.unref();
  }

  /** One timer for all: what one of them throws is its own. */
  #tick(w: Watched): void {
    try {
      w.tick(this.now);
    } catch (problem) {
      this.#watched.delete(w);
      w.broke?.(problem);
    }
  }

  leave(what: Watched): void {
    this.#watched.delete(what);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#watched.clear();
  }
}
