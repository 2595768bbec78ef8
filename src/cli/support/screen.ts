// Redraws a terminal in place: alternate screen, no cursor, and one write per frame that overwrites
// the previous frame, so that nothing flickers. The terminal is restored however the program ends.
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

  /** Draws a frame. Lines and characters that do not fit are cut off. */
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
