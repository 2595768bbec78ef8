// What one read from an upstream brings is many events, and leaves as one write: each write is a chunk of its own on the wire,
// with work for the client too.
import type { ClientResponse } from "./client-response.ts";

export class WriteBatcher {
  readonly #response: ClientResponse;
  #text = "";
  #isBatching = false;

  constructor(answer: ClientResponse) {
    this.#response = answer;
  }

  write(piece: string | Buffer): void {
    if (this.#isBatching && typeof piece === "string") {
      this.#text += piece;
      return;
    }
    this.flush();
    this.#response.write(piece);
  }

  /** Also when the work breaks off: what came before its fault is the client's. */
  batch(work: () => void): void {
    this.#isBatching = true;
    try {
      work();
    } finally {
      this.#isBatching = false;
      this.flush();
    }
  }

  flush(): void {
    if (this.#text === "") return;
    const text = this.#text;
    this.#text = "";
    this.#response.write(text);
  }
}
