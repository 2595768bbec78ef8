// Throttles log lines that repeat. The first line is written immediately. Repetitions within 60 s
// are written as one line with their number.

/** Writes the line. `times`: how many occurrences it represents. */
export type WriteRepeated = (times: number) => void;

interface ThrottleWindow {
  timer: NodeJS.Timeout;
  /** Occurrences since the last written line. */
  times: number;
  /** Writes the latest occurrence. */
  write: WriteRepeated;
}

const WINDOW_MS = 60_000;
/** Maximum number of windows. Further kinds of lines share one window. */
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

  /** Ends a window. If nothing occurred in it, the next occurrence is written immediately again. */
  #close(key: string): void {
    const window = this.#windows.get(key)!;
    const { times, write } = window;
    if (times === 0) return void this.#windows.delete(key);
    window.times = 0;
    window.timer = this.#schedule(key);
    write(times);
  }

  /** Writes the lines that were only counted so far. */
  [Symbol.dispose](): void {
    for (const { timer, times, write } of this.#windows.values()) {
      clearTimeout(timer);
      if (times > 0) write(times);
    }
    this.#windows.clear();
  }
}
