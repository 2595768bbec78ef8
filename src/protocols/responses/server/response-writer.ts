// Writes a response in this protocol, streamed or whole. Several blocks can be open, but items are
// written one at a time. Events of a later item wait for their turn.
import type {
  ResponseContext,
  Encoder,
  Fault,
  FinishReason,
  JsonObject,
  ModelEvent,
  OpenBlock,
  UsageReport,
} from "../../../plugin/index.ts";
import type { ResponsesDialect } from "../constants.ts";
import { createToolNameRestorer } from "../tools.ts";
import { streamFailure } from "./fault.ts";
import type { ResponseState } from "./response-object.ts";
import {
  proofCarrierItem,
  createOutputItem,
  type OutputContext,
  type OutputItem,
} from "./output/index.ts";

/** Value of `incomplete_details.reason` for each finish reason that is a limit. */
const LIMITS: Readonly<Partial<Record<FinishReason, string>>> = {
  length: "max_output_tokens",
  context: "max_output_tokens",
  pause: "max_output_tokens",
  filtered: "content_filter",
};

/** Index of the block that the writer itself opens. */
const WRITER_BLOCK = Number.MAX_SAFE_INTEGER;

/**
 * Destination of the events. `writeResponse` takes events that contain the whole response, and the
 * other methods take all other events.
 */
export interface EventSink extends Pick<OutputContext, "write" | "delta"> {
  writeResponse(type: string, now: ResponseState): void;
}

export class ResponseWriter implements Encoder {
  readonly #to: ResponseContext;
  readonly #sink: EventSink;
  readonly #output: OutputContext;
  readonly #items: JsonObject[] = [];
  #item: OutputItem | undefined;
  /** Index of the block that is being written, or -1 between two blocks. */
  #openBlock = -1;
  /** Blocks that wait for their turn, in the order in which they were opened. */
  readonly #waiting = new Map<number, ModelEvent[]>();
  #draining = false;
  /** Blocks for which this protocol has no item. */
  readonly #skippedBlocks = new Set<number>();
  #refused = false;
  #begun = false;
  #seen: UsageReport | undefined;
  #state: ResponseState = { status: "in_progress", output: this.#items };

  constructor(to: ResponseContext, dialect: ResponsesDialect, sink: EventSink) {
    this.#to = to;
    this.#sink = sink;
    const { write, delta } = sink;
    this.#output = { to, dialect, write, delta, restoreName: createToolNameRestorer(to.body) };
  }

  /** The response in its final state. */
  get finalState(): ResponseState {
    return this.#state;
  }

  writeEvent(event: ModelEvent): void {
    switch (event.type) {
      case "start":
        return this.#begin();
      case "usage":
        this.#seen = event;
        return;
      case "finish":
        return this.#finish(event);
      // Items of list responses. A chat response contains none.
      case "item":
        return;
      case "open":
        this.#begin();
        if (this.#openBlock < 0) return this.#open(event.index, event.block);
        this.#waiting.set(event.index, [event]);
        return;
      default: {
        const { index } = event;
        if (index === this.#openBlock)
          return event.type === "close" ? this.#close() : this.#item!.inside(event);
        if (!this.#skippedBlocks.has(index)) this.#waiting.get(index)?.push(event);
      }
    }
  }

  writeFault(fault: Fault): void {
    this.#begin();
    const item = this.#item;
    // A closed block is written as complete. An open block is kept only if clients do not act on
    // partial content of its type.
    if (item && this.#openBlock >= 0 && item.isPartialSafe) item.close();
    if (item && (this.#openBlock < 0 || item.isPartialSafe)) this.#conclude(this.#openBlock >= 0);
    // Some readers stop at the first of these events, and some readers wait for the second event.
    const { event, error } = streamFailure(fault, this.#to);
    this.#sink.write("error", event);
    this.#end("failed", { error });
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#sink.writeResponse("response.created", this.#state);
    this.#sink.writeResponse("response.in_progress", this.#state);
  }

  #open(index: number, block: OpenBlock): void {
    if (block.type === "refusal") this.#refused = true;
    if (!this.#item?.accepts(block)) {
      this.#conclude(false);
      this.#item = createOutputItem(block, this.#items.length, this.#output);
    }
    if (!this.#item) {
      this.#skippedBlocks.add(index);
      return;
    }
    this.#item.open(block);
    this.#openBlock = index;
  }

  #close(): void {
    this.#item!.close();
    this.#openBlock = -1;
    this.#drain();
  }

  /**
   * Writes the waiting blocks. If the next block is already complete, the block after it follows.
   */
  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    for (const [index, events] of this.#waiting) {
      if (this.#openBlock >= 0) break;
      this.#waiting.delete(index);
      for (const event of events) this.writeEvent(event);
    }
    this.#draining = false;
  }

  #conclude(cut: boolean): void {
    const item = this.#item;
    if (!item) return;
    const output = this.#items;
    const done = item.done(cut);
    if (done) output.push(done);
    for (const encrypted of item.pendingProofs)
      output.push(proofCarrierItem(encrypted, output.length, this.#output));
    this.#item = undefined;
  }

  #finish({ reason, detail }: Extract<ModelEvent, { type: "finish" }>): void {
    this.#begin();
    if (this.#openBlock >= 0) this.#close();
    let limit = LIMITS[reason];
    if (reason === "refusal" && !this.#refused) {
      // A refusal without text. If the provider gave a reason, it becomes the refusal text.
      if (detail === undefined) limit = "content_filter";
      else {
        this.writeEvent({ type: "open", index: WRITER_BLOCK, block: { type: "refusal" } });
        this.writeEvent({ type: "delta", index: WRITER_BLOCK, text: detail });
        this.writeEvent({ type: "close", index: WRITER_BLOCK });
      }
    }
    if (reason === "other" && detail === "max_messages") limit = detail;
    this.#conclude(limit !== undefined);
    this.#end(limit === undefined ? "completed" : "incomplete", { reason: limit });
  }

  #end(status: ResponseState["status"], more: Partial<ResponseState>): void {
    const { usage, tier } = this.#seen ?? {};
    this.#state = { status, output: this.#items, usage, tier, ...more };
    this.#sink.writeResponse(`response.${status}`, this.#state);
  }
}
