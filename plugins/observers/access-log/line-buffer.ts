// Lines that are gathered for a moment: a write costs as much as a hundred lines do, and a gateway at its best has ten thousand a
// second. Where there are few of them, each is written at once.
import type { Output } from "./output.ts";

/** Between two writes, unless there is more than `MOST` to write. */
const FLUSH_INTERVAL_MS = 25;
/** Characters. */
const MAX_CHARACTERS = 64 * 1024;

export class LineBuffer {
  readonly #output: Output;
  #text = "";
  #lines = 0;
  #lastFlushAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  /** Whole lines, so many. What it returns is waited for before there may be more. */
  add(text: string, lines: number): Promise<void> | undefined {
    this.#text += text;
    this.#lines += lines;
    const wait = this.#lastFlushAt + FLUSH_INTERVAL_MS - performance.now();
    if (wait <= 0 || this.#text.length > MAX_CHARACTERS) return this.flush();
    this.#timer ??= setTimeout(() => void this.flush(), wait);
    return undefined;
  }

  /** All that is here. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lastFlushAt = performance.now();
    const [text, lines] = [this.#text, this.#lines];
    this.#text = "";
    this.#lines = 0;
    return lines === 0 ? Promise.resolve() : this.#output.write(text, lines);
  }
}
