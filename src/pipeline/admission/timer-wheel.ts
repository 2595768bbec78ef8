// Runs one coarse timer for all open calls: a timer or a signal per request costs more than the
// request's own work.

export interface TimerEntry {
  /** Index in the timer wheel's list, or -1 if the entry is not in the list. */
  timerIndex: number;
  /** Called on each tick. `now` is the monotonic clock in milliseconds. */
  onTick(now: number): void;
  /** Called with the error that `onTick` threw. The entry has been removed. */
  onError?(problem: unknown): void;
}

const TICK_MS = 250;

export class TimerWheel implements Disposable {
  /**
   * Entries, each of which stores its own index. When an entry is removed, the last entry takes its
   * index. A Set would keep every request in memory until a full collection, because its replaced
   * hash tables refer to each other.
   */
  readonly #entries: TimerEntry[] = [];
  #timer: NodeJS.Timeout | undefined;
  /**
   * The monotonic clock as of the last tick, in milliseconds. This value is precise enough for
   * deadlines and needs no system call.
   */
  now = performance.now();

  add(entry: TimerEntry): void {
    if (entry.timerIndex >= 0) return;
    entry.timerIndex = this.#entries.push(entry) - 1;
    if (this.#timer) return;
    this.now = performance.now();
    this.#timer = setInterval(() => this.#tickAll(), TICK_MS);
    this.#timer.unref();
  }

  /**
   * Calls every entry, from last to first. If an entry is removed during the loop, the entry that
   * takes its index has already been called.
   */
  #tickAll(): void {
    this.now = performance.now();
    for (let i = this.#entries.length - 1; i >= 0; i--) {
      const w = this.#entries[i];
      if (w) this.#tick(w);
    }
    if (this.#entries.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Calls one entry. One timer serves all entries, so an error in one must not stop the others. */
  #tick(w: TimerEntry): void {
    try {
      w.onTick(this.now);
    } catch (problem) {
      this.remove(w);
      w.onError?.(problem);
    }
  }

  remove(entry: TimerEntry): void {
    const at = entry.timerIndex;
    if (at < 0) return;
    entry.timerIndex = -1;
    const last = this.#entries.pop()!;
    if (last === entry) return;
    this.#entries[at] = last;
    last.timerIndex = at;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const w of this.#entries.splice(0)) w.timerIndex = -1;
  }
}
