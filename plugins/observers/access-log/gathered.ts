// Lines that are gathered for a moment: a write costs as much as a hundred lines do, and a gateway at its best has ten thousand a
// second. Where there are few of them, each is written at once.
import type { Output } from "./output.ts";

/** Between two writes, unless there is more than `MOST` to write. */
const MOMENT_MS = 25;
/** Characters. */
const MOST = 64 * 1024;

export class Gathered {
  readonly #output: Output;
  #text = "";
  #lines = 0;
  #lastAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(output: Output) {
    this.#output = output;
  }

  /** Whole lines, so many. What it returns is waited for before there may be more. */
  add(text: string, lines: number): Promise<void> | undefined {
    this.#text += text;
    this.#lines += lines;
    const wait = this.#lastAt + MOMENT_MS - performance.now();
    if (wait <= 0 || this.#text.length > MOST) return this.write();
    this.#timer ??= setTimeout(() => void this.write(), wait);
    return undefined;
  }

  /** All that is here. */
  write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lastAt = performance.now();
    const [text, lines] = [this.#text, this.#lines];
    this.#text = "";
    this.#lines = 0;
    return lines === 0 ? Promise.resolve() : this.#output.write(text, lines);
  }
}
