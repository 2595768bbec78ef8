// What one read from an upstream brings is many events, and leaves as one write: each write is a chunk of its own on the wire,
// with work for the client too.
import type { ClientAnswer } from "./client-answer.ts";

export class GatheredText {
  readonly #answer: ClientAnswer;
  #text = "";
  #gathers = false;

  constructor(answer: ClientAnswer) {
    this.#answer = answer;
  }

  write(piece: string | Buffer): void {
    if (this.#gathers && typeof piece === "string") {
      this.#text += piece;
      return;
    }
    this.flush();
    this.#answer.write(piece);
  }

  /** Also when the work breaks off: what came before its fault is the client's. */
  together(work: () => void): void {
    this.#gathers = true;
    try {
      work();
    } finally {
      this.#gathers = false;
      this.flush();
    }
  }

  flush(): void {
    if (this.#text === "") return;
    const text = this.#text;
    this.#text = "";
    this.#answer.write(text);
  }
}
