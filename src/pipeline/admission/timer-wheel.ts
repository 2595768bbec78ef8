// One coarse timer for all open calls: a timer or a signal per request costs more than the request's own work.

export interface TimerEntry {
  /** Where it stands in the watchdog's list; -1: nowhere. */
  timerIndex: number;
  /** Called once a tick while watched. `now` is the monotonic clock in milliseconds. */
  onTick(now: number): void;
  /** What became of a tick that threw; it is not watched any longer. */
  onError?(problem: unknown): void;
}

const TICK_MS = 250;

export class TimerWheel implements Disposable {
  /**
   * Each knows its own place, and the last takes the place of one that leaves. A Set would hold every request in memory
   * until a full collection: its tables, made anew after every so many changes, hang together.
   */
  readonly #entries: TimerEntry[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** The monotonic clock, as of the last tick: good enough for deadlines, free to read. */
  now = performance.now();

  add(entry: TimerEntry): void {
    if (entry.timerIndex >= 0) return;
    entry.timerIndex = this.#entries.push(entry) - 1;
    if (this.#timer) return;
    this.now = performance.now();
    this.#timer = setInterval(() => this.#tickAll(), TICK_MS);
    this.#timer.unref();
  }

  /** From the end: the place of one that leaves meanwhile is taken by one that has had its turn. */
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

  /** One timer serves all, so a throw of one must not stop the others. */
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
