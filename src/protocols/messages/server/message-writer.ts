import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { message } from "./content.ts";

/** The stream as it is written. The message begins with its first block, so that counts known by then stand in it. */
export class MessageWriter {
  usage: Usage = {};
  #begun = false;
  #index = -1;
  #last: Json | undefined;
  /** Proofs that wait to see whether something follows. */
  #pendingCarriers: JsonObject[] = [];
  readonly #write: (text: string) => void;
  readonly #to: ResponseContext;

  constructor(write: (text: string) => void, to: ResponseContext) {
    this.#write = write;
    this.#to = to;
  }

  event(type: string, body: JsonObject): void {
    this.#write(`event: ${type}\ndata: ${JSON.stringify({ type, ...body })}\n\n`);
  }

  begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    // Some clients add these output tokens to the final ones: none have been told yet.
    const { output: _output, reasoning: _reasoning, ...read } = this.usage;
    this.event("message_start", { message: message(this.#to, read) });
  }

  start(block: JsonObject): void {
    this.begin();
    for (const proof of this.#pendingCarriers.splice(0)) this.addBlock(proof);
    this.#last = block["type"];
    this.event("content_block_start", { index: ++this.#index, content_block: block });
  }

  /** The hot path: most of a stream is this. */
  delta(type: string, field: string, text: string): void {
    this.#write(
      `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},` +
        `"delta":{"type":"${type}","${field}":${JSON.stringify(text)}}}\n\n`,
    );
  }

  cite(citation: Json): void {
    const delta = { type: "citations_delta", citation };
    this.event("content_block_delta", { index: this.#index, delta });
  }

  stop(): void {
    this.event("content_block_stop", { index: this.#index });
  }

  /** A block that only carries a proof. What is said last must stay last (see `spokenLast`), so after words it waits. */
  addCarrier(block: JsonObject): void {
    if (this.#last === "text") this.#pendingCarriers.push(block);
    else this.addBlock(block);
  }

  /** A block that has no deltas. */
  addBlock(block: JsonObject): void {
    this.start(block);
    this.stop();
  }
}
