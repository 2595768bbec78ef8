import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { message } from "./content.ts";

/**
 * Writes a message as a stream. The message starts with its first block, so that `message_start`
 * contains the usage known by then.
 */
export class MessageWriter {
  usage: Usage = {};
  #begun = false;
  #index = -1;
  #last: Json | undefined;
  /** Proofs that are held back until another block follows. */
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
    // Some clients add these output tokens to the final ones, so output is omitted here.
    const { output: _output, reasoning: _reasoning, ...read } = this.usage;
    this.event("message_start", { message: message(this.#to, read) });
  }

  start(block: JsonObject): void {
    this.begin();
    for (const proof of this.#pendingCarriers.splice(0)) this.addBlock(proof);
    this.#last = block["type"];
    this.event("content_block_start", { index: ++this.#index, content_block: block });
  }

  /** Writes a delta. This is the hot path, because most of a stream is deltas. */
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

  /**
   * Adds a block that only carries a proof. After text it is held back, because text at the end
   * must stay last (see `withoutTrailingCarriers`).
   */
  addCarrier(block: JsonObject): void {
    if (this.#last === "text") this.#pendingCarriers.push(block);
    else this.addBlock(block);
  }

  /** Adds a block that has no deltas. */
  addBlock(block: JsonObject): void {
    this.start(block);
    this.stop();
  }
}
