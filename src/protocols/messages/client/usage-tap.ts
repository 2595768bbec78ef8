import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { PassthroughSink } from "../../../plugin/protocol.ts";
import { MessagesToolCounts } from "../tool-counts.ts";
import { parseBilledUsage, startUsage } from "../usage.ts";
import { isObject, asObjects, asText } from "../../json-values.ts";
import { parseFinishReason } from "../constants.ts";

/** What passes by, told to the host. */
export class UsageTap {
  /** The answer's end has been named. */
  isEnded = false;
  /** The output has been counted. */
  isCounted = false;
  readonly #sink: PassthroughSink;
  #model: string | undefined;
  #usage: Usage = {};
  readonly #tools = new MessagesToolCounts();
  #reason: string | undefined;
  #hasContent = false;
  #textBytes = 0;

  constructor(sink: PassthroughSink) {
    this.#sink = sink;
  }

  /** `words`: bytes of text. */
  content(words = 0): void {
    this.#textBytes += words;
    if (this.#hasContent) return;
    this.#hasContent = true;
    this.#sink.reportContent(0);
  }

  /** Once a write, however many events it had. */
  reportText(): void {
    if (this.#textBytes > 0) this.#sink.reportContent(this.#textBytes);
    this.#textBytes = 0;
  }

  /** `message_start`: of the output it has only a placeholder. */
  start(message: JsonObject): void {
    const { usage } = message;
    this.response({ ...message, ...(isObject(usage) && { usage: startUsage(usage) }) });
  }

  /** A block begins: runs of tools are counted by theirs. */
  block(block: JsonObject): void {
    if (!this.#tools.block(block)) return;
    const usage = this.#tools.current(this.#usage);
    this.#sink.reportUsage({ type: "usage", usage, model: this.#model });
  }

  response(message: JsonObject): void {
    this.#model = asText(message["model"]);
    for (const block of asObjects(message["content"])) this.#tools.block(block);
    const id = asText(message["id"]);
    if (id !== undefined) this.#sink.reportStart(id);
    this.delta({ usage: message["usage"], delta: message });
  }

  delta(event: JsonObject): void {
    const { usage, delta } = event;
    if (isObject(usage))
      for (const bill of parseBilledUsage(usage, this.#model, this.#usage)) {
        if (bill.model === this.#model) this.#usage = mergeUsage(this.#usage, bill.usage);
        this.isCounted ||= bill.usage.output !== undefined;
        const own = bill.model === this.#model;
        this.#sink.reportUsage(own ? { ...bill, usage: this.#tools.final(bill.usage) } : bill);
      }
    const reason = isObject(delta) ? asText(delta["stop_reason"]) : undefined;
    if (reason === undefined) return;
    this.#reason = reason;
    this.isEnded = true;
  }

  /** What was settled, where upstream has not counted. */
  finish(): Usage | undefined {
    this.reportText();
    const usage = this.#tools.final({});
    if (!this.isCounted && Object.keys(usage).length > 0)
      this.#sink.reportUsage({ type: "usage", usage, model: this.#model });
    const settled = this.#sink.reportFinish(parseFinishReason(this.#reason ?? "end_turn").reason);
    return this.isCounted ? undefined : settled;
  }
}
