// Lines that would come again and again: the first one is written at once, what follows within a minute as one, with its number.

/** Writes the line; `times`: how many it stands for. */
export type Repeated = (times: number) => void;

interface Window {
  timer: NodeJS.Timeout;
  /** Since the last line. */
  times: number;
  /** The latest of them. */
  write: Repeated;
}

const EVERY_MS = 60_000;
/** More kinds of lines at one time share one window. */
const MOST = 1_000;

export class Repeats implements Disposable {
  readonly #everyMs: number;
  readonly #open = new Map<string, Window>();

  constructor(everyMs = EVERY_MS) {
    this.#everyMs = everyMs;
  }

  /** `what`: the same for lines that say the same. */
  say(what: string, write: Repeated): void {
    const key = this.#open.size < MOST || this.#open.has(what) ? what : "";
    const window = this.#open.get(key);
    if (window) {
      window.times++;
      window.write = write;
      return;
    }
    this.#open.set(key, { timer: this.#later(key), times: 0, write });
    write(1);
  }

  #later(key: string): NodeJS.Timeout {
    return setTimeout(() => this.#close(key), this.#everyMs).unref();
  }

  /** Nothing came meanwhile: the next one is a first one again. */
  #close(key: string): void {
    const window = this.#open.get(key)!;
    const { times, write } = window;
    if (times === 0) return void this.#open.delete(key);
    window.times = 0;
    window.timer = this.#later(key);
    write(times);
  }

  /** What was counted is told. */
  [Symbol.dispose](): void {
    for (const { timer, times, write } of this.#open.values()) {
      clearTimeout(timer);
      if (times > 0) write(times);
    }
    this.#open.clear();
  }
}
