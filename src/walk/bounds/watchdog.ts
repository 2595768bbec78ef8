// One coarse timer for all open calls: a timer or a signal per request costs more than the request's own work.

export interface Watchable {
  /** Where it stands in the watchdog's list; -1: nowhere. */
  watchedAt: number;
  /** Called once a tick while watched. `now` is the monotonic clock in milliseconds. */
  tick(now: number): void;
  /** What became of a tick that threw; it is not watched any longer. */
  broke?(problem: unknown): void;
}

const EVERY_MS = 250;

export class Watchdog implements Disposable {
  /**
   * Each knows its own place, and the last takes the place of one that leaves. A Set would hold every request in memory
   * until a full collection: its tables, made anew after every so many changes, hang together.
   */
  readonly #watched: Watchable[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** The monotonic clock, as of the last tick: good enough for deadlines, free to read. */
  now = performance.now();

  watch(what: Watchable): void {
    if (what.watchedAt >= 0) return;
    what.watchedAt = this.#watched.push(what) - 1;
    if (this.#timer) return;
    this.now = performance.now();
    this.#timer = setInterval(() => this.#round(), EVERY_MS);
    this.#timer.unref();
  }

  /** From the end: the place of one that leaves meanwhile is taken by one that has had its turn. */
  #round(): void {
    this.now = performance.now();
    for (let i = this.#watched.length - 1; i >= 0; i--) {
      const w = this.#watched[i];
      if (w) this.#tick(w);
    }
    if (this.#watched.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** One timer serves all, so a throw of one must not stop the others. */
  #tick(w: Watchable): void {
    try {
      w.tick(this.now);
    } catch (problem) {
      this.leave(w);
      w.broke?.(problem);
    }
  }

  leave(what: Watchable): void {
    const at = what.watchedAt;
    if (at < 0) return;
    what.watchedAt = -1;
    const last = this.#watched.pop()!;
    if (last === what) return;
    this.#watched[at] = last;
    last.watchedAt = at;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const w of this.#watched.splice(0)) w.watchedAt = -1;
  }
}
