// Throttles log lines that repeat. The first line is written immediately. Repetitions within 60 s
// are written as one line with their number.

/** Writes the line. `times`: the number of occurrences that the line represents. */
export type WriteRepeated = (times: number) => void;

interface ThrottleWindow {
  timer: NodeJS.Timeout;
  /** Occurrences since the last written line. */
  times: number;
  /** Writes a line for the latest occurrence. */
  write: WriteRepeated;
}

const WINDOW_MS = 60_000;
/** Maximum number of windows. All additional kinds of lines share one window. */
const MAX_WINDOWS = 1_000;

export class LogThrottle implements Disposable {
  readonly #everyMs: number;
  readonly #windows = new Map<string, ThrottleWindow>();

  constructor(everyMs = WINDOW_MS) {
    this.#everyMs = everyMs;
  }

  /** Logs one occurrence. `name`: identifies lines with the same meaning. */
  log(name: string, write: WriteRepeated): void {
    const key = this.#windows.size < MAX_WINDOWS || this.#windows.has(name) ? name : "";
    const window = this.#windows.get(key);
    if (window) {
      window.times++;
      window.write = write;
      return;
    }
    this.#windows.set(key, { timer: this.#schedule(key), times: 0, write });
    write(1);
  }

  #schedule(key: string): NodeJS.Timeout {
    return setTimeout(() => this.#close(key), this.#everyMs).unref();
  }

  /**
   * Ends a window. If there was no occurrence in it, the next occurrence is written immediately.
   */
  #close(key: string): void {
    const window = this.#windows.get(key)!;
    const { times, write } = window;
    if (times === 0) return void this.#windows.delete(key);
    window.times = 0;
    window.timer = this.#schedule(key);
    write(times);
  }

  /** Writes lines for occurrences that were only counted. */
  [Symbol.dispose](): void {
    for (const { timer, times, write } of this.#windows.values()) {
      clearTimeout(timer);
      if (times > 0) write(times);
    }
    this.#windows.clear();
  }
}
