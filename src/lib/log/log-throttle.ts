// Lines that would come again and again: the first one is written at once, what follows within a minute as one, with its number.

/** Writes the line; `times`: how many it stands for. */
export type WriteRepeated = (times: number) => void;

interface ThrottleWindow {
  timer: NodeJS.Timeout;
  /** Since the last line. */
  times: number;
  /** The latest of them. */
  write: WriteRepeated;
}

const WINDOW_MS = 60_000;
/** More kinds of lines at one time share one window. */
const MAX_WINDOWS = 1_000;

export class LogThrottle implements Disposable {
  readonly #everyMs: number;
  readonly #windows = new Map<string, ThrottleWindow>();

  constructor(everyMs = WINDOW_MS) {
    this.#everyMs = everyMs;
  }

  /** `what`: the same for lines that say the same. */
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

  /** Nothing came meanwhile: the next one is a first one again. */
  #close(key: string): void {
    const window = this.#windows.get(key)!;
    const { times, write } = window;
    if (times === 0) return void this.#windows.delete(key);
    window.times = 0;
    window.timer = this.#schedule(key);
    write(times);
  }

  /** What was counted is told. */
  [Symbol.dispose](): void {
    for (const { timer, times, write } of this.#windows.values()) {
      clearTimeout(timer);
      if (times > 0) write(times);
    }
    this.#windows.clear();
  }
}
