// Writes each type of block as a sequence of events.
import type { OpenBlock } from "../../../model/event.ts";
import type { Proof } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { isObject } from "../../json-values.ts";
import { isNativeCitation } from "../constants.ts";
import {
  callBlock,
  proofCarrierBlock,
  isCarrier,
  ownBlock,
  reasoningBlock,
  signature,
  textBlock,
  message,
} from "./content.ts";

export interface BlockWriter {
  delta?(text: string): void;
  cite?(citation: Json): void;
  proof?(proof: Proof): void;
  close?(): void;
}

export function createBlockWriter(
  block: OpenBlock,
  page: MessageWriter,
  named: (name: string) => string,
  to: ResponseContext,
): BlockWriter {
  switch (block.type) {
    case "text":
    case "refusal":
      return text(page);
    case "reasoning":
      return reasoning(page, block.summary === true);
    case "call":
      return call(page, block.id, named(block.name), block.tool);
    case "opaque": {
      const own = ownBlock(block.origin, block.raw);
      return own ? opaque(page, own) : text(page);
    }
    default:
      to.reportLoss(`content.${block.type}`, "dropped");
      return {};
  }
}

/**
 * Returns a writer for text. Clients reject an empty text block when they send it back, so the
 * block starts with its first text.
 */
function text(page: MessageWriter): BlockWriter {
  let started = false;
  let proof: Proof | undefined;
  const start = () => {
    if (!started) page.start(textBlock(""));
    started = true;
  };
  const early: Json[] = [];
  return {
    delta(said) {
      if (said === "") return;
      start();
      for (const citation of early.splice(0)) page.cite(citation);
      page.delta("text_delta", "text", said);
    },
    cite(citation) {
      if (!isNativeCitation(citation)) return;
      if (started) page.cite(citation);
      else early.push(citation);
    },
    proof: (p) => void (proof = p),
    close() {
      if (started) page.stop();
      if (proof) page.addCarrier(proofCarrierBlock(proof, "text"));
    },
  };
}

/**
 * Returns a writer for reasoning. Its one signature comes last, because it signs the text before
 * it.
 */
function reasoning(page: MessageWriter, summary: boolean): BlockWriter {
  let started = false;
  let proof: Proof | undefined;
  const start = () => {
    if (!started) page.start({ type: "thinking", thinking: "", signature: "" });
    started = true;
  };
  return {
    delta(said) {
      if (said === "") return;
      start();
      page.delta("thinking_delta", "thinking", said);
    },
    proof: (p) => void (proof = p),
    close() {
      if (!started) {
        const block = reasoningBlock("", proof, summary);
        if (!block) return;
        if (isCarrier(block)) return page.addCarrier(block);
        if (block["type"] !== "thinking") return page.addBlock(block);
        start();
      }
      page.delta("signature_delta", "signature", signature(proof, summary));
      page.stop();
    },
  };
}

/**
 * Returns a writer for a call. Arguments are never in the start event. Free text becomes the one
 * member that the tool's wrapper declares.
 */
function call(
  page: MessageWriter,
  id: string,
  name: string,
  tool: "function" | "custom",
): BlockWriter {
  let proof: Proof | undefined;
  page.start(callBlock(id, name, {}));
  const say = (args: string) => page.delta("input_json_delta", "partial_json", args);
  if (tool === "custom") say('{"input":"');
  return {
    delta(args) {
      if (args === "") return;
      say(tool === "custom" ? JSON.stringify(args).slice(1, -1) : args);
    },
    proof: (p) => void (proof = p),
    close() {
      if (tool === "custom") say('"}');
      page.stop();
      if (proof) page.addBlock(proofCarrierBlock(proof, "call"));
    },
  };
}

function opaque(page: MessageWriter, raw: JsonObject): BlockWriter {
  const { type, input } = raw;
  if (typeof type !== "string" || !type.endsWith("tool_use") || !isObject(input))
    return { close: () => page.addBlock(raw) };
  return {
    close() {
      page.start({ ...raw, input: {} });
      page.delta("input_json_delta", "partial_json", JSON.stringify(input));
      page.stop();
    },
  };
}

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
