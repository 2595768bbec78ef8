// Collects lines for a short time and writes them together. One write costs as much as formatting
// 100 lines, and a busy gateway logs up to 10,000 lines per second. At low rates each line is
// written immediately.
import type { Output } from "./output.ts";

/** Minimum time between two writes, unless more than `MAX_CHARACTERS` are buffered. */
const FLUSH_INTERVAL_MS = 25;
/** Size of the buffer in characters. */
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

  /**
   * Adds a number of complete lines. If it returns a promise, the caller must wait for that promise
   * before adding more.
   */
  add(text: string, lines: number): Promise<void> | undefined {
    this.#text += text;
    this.#lines += lines;
    const wait = this.#lastFlushAt + FLUSH_INTERVAL_MS - performance.now();
    if (wait <= 0 || this.#text.length > MAX_CHARACTERS) return this.flush();
    this.#timer ??= setTimeout(() => void this.flush(), wait);
    return undefined;
  }

  /** Writes all buffered lines. */
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
