// Writes each type of block as a sequence of events.
import type { OpenBlock } from "../../../model/event.ts";
import type { Proof } from "../../../model/request.ts";
import { type Usage, mergeUsage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext, Encoder } from "../../../plugin/protocol.ts";
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
  formatFinish,
  namesOf,
} from "./content.ts";
import type { Fault } from "../../../model/error.ts";
import { joinSurrogatePairs } from "../../surrogate-pairs.ts";
import { BlockSequencer, type IndexedEvent } from "../../block-sequencer.ts";
import { withCost } from "../../cost-in-usage.ts";
import { usageTo } from "../usage.ts";
import { encodeFault as refusal } from "./fault.ts";

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
    delta(piece) {
      if (piece === "") return;
      start();
      for (const citation of early.splice(0)) page.cite(citation);
      page.delta("text_delta", "text", piece);
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
 * Returns a writer for reasoning. The signature is written last, because it signs the text before
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
    delta(piece) {
      if (piece === "") return;
      start();
      page.delta("thinking_delta", "thinking", piece);
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
 * Returns a writer for a call. Arguments are never in the start event. Free text becomes the member
 * that the tool's wrapper declares.
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
 * contains the usage that is known at that time.
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
    // Some clients add these output tokens to the final output tokens, so output is omitted here.
    const { output: _output, reasoning: _reasoning, ...read } = this.usage;
    this.event("message_start", { message: message(this.#to, read) });
  }

  start(block: JsonObject): void {
    this.begin();
    for (const proof of this.#pendingCarriers.splice(0)) this.addBlock(proof);
    this.#last = block["type"];
    this.event("content_block_start", { index: ++this.#index, content_block: block });
  }

  /** Writes a delta. This method is called most often, because most of a stream is deltas. */
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

/**
 * Encodes a response as a stream. This protocol's order is strict: one `message_start`, blocks one
 * after another with rising indexes, `message_delta`, and `message_stop`. Each event has an
 * `event:` line. If several blocks are open, the first is written as it arrives and the others
 * after it has closed.
 */
export function createEncoder(write: (text: string) => void, to: ResponseContext): Encoder {
  const page = new MessageWriter(write, to);
  const named = namesOf(to);
  let block: BlockWriter | undefined;
  let blockType: OpenBlock["type"] | undefined;
  const held = { hasCalls: false, hasRefusal: false };

  const turns = new BlockSequencer((e: IndexedEvent): void => {
    switch (e.type) {
      case "open":
        blockType = e.block.type;
        held.hasCalls ||= blockType === "call" || isCall(e.block);
        block = createBlockWriter(e.block, page, named, to);
        return;
      case "delta":
        held.hasRefusal ||= blockType === "refusal" && e.text !== "";
        return block?.delta?.(e.text);
      case "cite":
        return block?.cite?.(e.citation);
      case "proof":
        return block?.proof?.(e.proof);
      case "close":
        block?.close?.();
        block = undefined;
    }
  });

  return joinSurrogatePairs({
    writeEvent(e) {
      switch (e.type) {
        case "start":
          return;
        case "usage":
          page.usage = mergeUsage(page.usage, e.usage);
          return;
        case "finish":
          page.begin();
          page.event("message_delta", {
            delta: formatFinish(e, held),
            usage: withCost(cumulative(page.usage), to),
          });
          return page.event("message_stop", {});
        case "item":
          return;
        default:
          turns.event(e);
      }
    },
    writeFault(f: Fault) {
      write(`event: error\ndata: ${JSON.stringify(refusal(f, to).body)}\n\n`);
    },
  });
}

/** Whether a block is a call to the client's tool in a form that only this protocol has. */
const isCall = (block: OpenBlock): boolean =>
  block.type === "opaque" && isObject(block.raw) && block.raw["type"] === "tool_use";

/**
 * Returns the usage for `message_delta`, which contains counts but no service tier, speed, or
 * region.
 */
const cumulative = (usage: Usage): JsonObject => {
  const {
    service_tier: _tier,
    speed: _speed,
    inference_geo: _geo,
    ...counts
  } = usageTo(usage) as {
    [name: string]: Json;
  };
  return counts;
};
