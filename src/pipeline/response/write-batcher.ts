// Batches the events from one read of a provider's response into one write. Each write is a
// separate chunk on the connection, which costs the client work too.
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

  /**
   * Runs `work` and writes everything that it produced. If `work` throws, the data written before
   * the error is still sent.
   */
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
