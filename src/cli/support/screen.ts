// A terminal that is drawn again and again in place: the other screen, no cursor, and each picture in one write that overwrites the
// one before, so that nothing flickers. Whatever ends the program, the terminal is as it was.
import { truncateLine } from "../format/terminal.ts";

const ENTER_ALTERNATE = "\u001b[?1049h\u001b[?25l";
const LEAVE_ALTERNATE = "\u001b[?25h\u001b[?1049l";
const BEGIN_FRAME = "\u001b[?2026h\u001b[H";
const LINE_END = "\u001b[K";
const END_FRAME = "\u001b[J\u001b[?2026l";

export interface Terminal {
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

export class Screen implements Disposable {
  readonly #terminal: Terminal;
  readonly #leave = () => void this.#terminal.write(LEAVE_ALTERNATE);

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    terminal.write(ENTER_ALTERNATE);
    process.once("exit", this.#leave);
  }

  /** What does not fit is cut off. */
  draw(lines: readonly string[]): void {
    const { columns = 80, rows = 24 } = this.#terminal;
    const picture = lines
      .slice(0, rows)
      .map((line) => truncateLine(line, columns) + LINE_END)
      .join("\r\n");
    this.#terminal.write(`${BEGIN_FRAME}${picture}${END_FRAME}`);
  }

  [Symbol.dispose](): void {
    process.off("exit", this.#leave);
    this.#leave();
  }
}
