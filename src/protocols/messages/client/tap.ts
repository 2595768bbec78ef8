import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { RelaySink } from "../../../plugin/protocol.ts";
import { MessagesToolCounts } from "../tool-counts.ts";
import { billsOf, startOf } from "../usage.ts";
import { isObject, objects, text } from "../../json.ts";
import { finishOf } from "../words.ts";

/** What passes by, told to the host. */
export class Tap {
  /** The answer's end has been named. */
  ended = false;
  /** The output has been counted. */
  counted = false;
  readonly #sink: RelaySink;
  #model: string | undefined;
  #usage: Usage = {};
  readonly #tools = new MessagesToolCounts();
  #reason: string | undefined;
  #said = false;
  #words = 0;

  constructor(sink: RelaySink) {
    this.#sink = sink;
  }

  /** `words`: bytes of text. */
  content(words = 0): void {
    this.#words += words;
    if (this.#said) return;
    this.#said = true;
    this.#sink.content(0);
  }

  /** Once a write, however many events it had. */
  told(): void {
    if (this.#words > 0) this.#sink.content(this.#words);
    this.#words = 0;
  }

  /** `message_start`: of the output it has only a placeholder. */
  start(message: JsonObject): void {
    const { usage } = message;
    this.whole({ ...message, ...(isObject(usage) && { usage: startOf(usage) }) });
  }

  /** A block begins: runs of tools are counted by theirs. */
  block(block: JsonObject): void {
    if (!this.#tools.block(block)) return;
    const usage = this.#tools.soFar(this.#usage);
    this.#sink.usage({ type: "usage", usage, model: this.#model });
  }

  whole(message: JsonObject): void {
    this.#model = text(message["model"]);
    for (const block of objects(message["content"])) this.#tools.block(block);
    const id = text(message["id"]);
    if (id !== undefined) this.#sink.start(id);
    this.delta({ usage: message["usage"], delta: message });
  }

  delta(event: JsonObject): void {
    const { usage, delta } = event;
    if (isObject(usage))
      for (const bill of billsOf(usage, this.#model, this.#usage)) {
        if (bill.model === this.#model) this.#usage = mergeUsage(this.#usage, bill.usage);
        this.counted ||= bill.usage.output !== undefined;
        const own = bill.model === this.#model;
        this.#sink.usage(own ? { ...bill, usage: this.#tools.atEnd(bill.usage) } : bill);
      }
    const reason = isObject(delta) ? text(delta["stop_reason"]) : undefined;
    if (reason === undefined) return;
    this.#reason = reason;
    this.ended = true;
  }

  /** What was settled, where upstream has not counted. */
  finish(): Usage | undefined {
    this.told();
    const usage = this.#tools.atEnd({});
    if (!this.counted && Object.keys(usage).length > 0)
      this.#sink.usage({ type: "usage", usage, model: this.#model });
    const settled = this.#sink.finish(finishOf(this.#reason ?? "end_turn").reason);
    return this.counted ? undefined : settled;
  }
}
