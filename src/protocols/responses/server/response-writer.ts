// An answer as this protocol tells it, streamed or whole. Blocks may be open together; here one item is written at a time,
// and what belongs to a later one waits for its turn.
import type {
  AnswerContext,
  Encoder,
  Fault,
  FinishReason,
  JsonObject,
  ModelEvent,
  OpenBlock,
  UsageSeen,
} from "../../../plugin/index.ts";
import type { ResponsesDialect } from "../dialect.ts";
import { naming } from "../names.ts";
import { failure } from "./fault.ts";
import type { ResponseState } from "./object.ts";
import { carrier, itemFor, type OutputContext, type Item } from "./output/index.ts";

/** Which limit, where the answer ended at one. */
const LIMITS: Readonly<Partial<Record<FinishReason, string>>> = {
  length: "max_output_tokens",
  context: "max_output_tokens",
  pause: "max_output_tokens",
  filtered: "content_filter",
};

/** The index of the block that the writer itself opens. */
const LAST = Number.MAX_SAFE_INTEGER;

/** Where the events go: `tell` takes those that carry the whole response, the others everything else. */
export interface EventSink extends Pick<OutputContext, "say" | "delta"> {
  tell(type: string, now: ResponseState): void;
}

export class ResponseWriter implements Encoder {
  readonly #to: AnswerContext;
  readonly #sink: EventSink;
  readonly #desk: OutputContext;
  readonly #output: JsonObject[] = [];
  #item: Item | undefined;
  /** The block that the item is being fed from; -1 between two. */
  #live = -1;
  /** Blocks that wait for their turn, in the order in which they were opened. */
  readonly #waiting = new Map<number, ModelEvent[]>();
  #draining = false;
  /** Blocks that this wire has no item for. */
  readonly #unsaid = new Set<number>();
  #refused = false;
  #begun = false;
  #seen: UsageSeen | undefined;
  #standing: ResponseState = { status: "in_progress", output: this.#output };

  constructor(to: AnswerContext, dialect: ResponsesDialect, sink: EventSink) {
    this.#to = to;
    this.#sink = sink;
    const { say, delta } = sink;
    this.#desk = { to, dialect, say, delta, name: naming(to.body) };
  }

  /** The response as it stands at its end. */
  get last(): ResponseState {
    return this.#standing;
  }

  event(event: ModelEvent): void {
    switch (event.type) {
      case "start":
        return this.#begin();
      case "usage":
        this.#seen = event;
        return;
      case "finish":
        return this.#finish(event);
      // What answers are made of that are lists of things: a chat holds none.
      case "item":
        return;
      case "open":
        this.#begin();
        if (this.#live < 0) return this.#open(event.index, event.block);
        this.#waiting.set(event.index, [event]);
        return;
      default: {
        const { index } = event;
        if (index === this.#live)
          return event.type === "close" ? this.#close() : this.#item!.inside(event);
        if (!this.#unsaid.has(index)) this.#waiting.get(index)?.push(event);
      }
    }
  }

  fail(fault: Fault): void {
    this.#begin();
    const item = this.#item;
    // A block that was closed is whole; of the others, what no client acts upon is worth keeping.
    if (item && this.#live >= 0 && item.harmless) item.close();
    if (item && (this.#live < 0 || item.harmless)) this.#conclude(this.#live >= 0);
    // Some readers stop at the first of these, some wait for the second.
    const { event, error } = failure(fault, this.#to);
    this.#sink.say("error", event);
    this.#end("failed", { error });
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#sink.tell("response.created", this.#standing);
    this.#sink.tell("response.in_progress", this.#standing);
  }

  #open(index: number, block: OpenBlock): void {
    if (block.type === "refusal") this.#refused = true;
    if (!this.#item?.takes(block)) {
      this.#conclude(false);
      this.#item = itemFor(block, this.#output.length, this.#desk);
    }
    if (!this.#item) {
      this.#unsaid.add(index);
      return;
    }
    this.#item.open(block);
    this.#live = index;
  }

  #close(): void {
    this.#item!.close();
    this.#live = -1;
    this.#drain();
  }

  /** The next in line may be whole already, and make room in its turn. */
  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    for (const [index, events] of this.#waiting) {
      if (this.#live >= 0) break;
      this.#waiting.delete(index);
      for (const event of events) this.event(event);
    }
    this.#draining = false;
  }

  #conclude(cut: boolean): void {
    const item = this.#item;
    if (!item) return;
    const output = this.#output;
    const done = item.done(cut);
    if (done) output.push(done);
    for (const encrypted of item.left) output.push(carrier(encrypted, output.length, this.#desk));
    this.#item = undefined;
  }

  #finish({ reason, detail }: Extract<ModelEvent, { type: "finish" }>): void {
    this.#begin();
    if (this.#live >= 0) this.#close();
    let limit = LIMITS[reason];
    if (reason === "refusal" && !this.#refused) {
      // Declined without a word: the reason given is the refusal, if one was.
      if (detail === undefined) limit = "content_filter";
      else {
        this.event({ type: "open", index: LAST, block: { type: "refusal" } });
        this.event({ type: "delta", index: LAST, text: detail });
        this.event({ type: "close", index: LAST });
      }
    }
    if (reason === "other" && detail === "max_messages") limit = detail;
    this.#conclude(limit !== undefined);
    this.#end(limit === undefined ? "completed" : "incomplete", { reason: limit });
  }

  #end(status: ResponseState["status"], more: Partial<ResponseState>): void {
    const { usage, tier } = this.#seen ?? {};
    this.#standing = { status, output: this.#output, usage, tier, ...more };
    this.#sink.tell(`response.${status}`, this.#standing);
  }
}
