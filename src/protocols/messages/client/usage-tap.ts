import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { JsonObject, Json } from "../../../model/values.ts";
import type { PassthroughSink } from "../../../plugin/protocol.ts";
import { isObject, asObjects, asText } from "../../json-values.ts";
import { parseFinishReason } from "../constants.ts";
import { MessagesToolCounts, parseBilledUsage, startUsage } from "../usage.ts";

/** Reports content, usage, and the end of a forwarded response to the host. */
export class UsageTap {
  /** Whether the provider has sent a stop reason. */
  isEnded = false;
  /** Whether the provider has counted the output. */
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

  /** Records content. `words` is the number of bytes of text. */
  content(words = 0): void {
    this.#textBytes += words;
    if (this.#hasContent) return;
    this.#hasContent = true;
    this.#sink.reportContent(0);
  }

  /** Reports the text size. Called once per write, however many events it contains. */
  reportText(): void {
    if (this.#textBytes > 0) this.#sink.reportContent(this.#textBytes);
    this.#textBytes = 0;
  }

  /** Handles `message_start`, whose output count is only a placeholder. */
  start(message: JsonObject): void {
    const { usage } = message;
    this.response({ ...message, ...(isObject(usage) && { usage: startUsage(usage) }) });
  }

  /** Handles the start of a block, which may be a tool run. */
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

  /** Reports the end. Returns the settled usage if the provider has not counted the output. */
  finish(): Usage | undefined {
    this.reportText();
    const usage = this.#tools.final({});
    if (!this.isCounted && Object.keys(usage).length > 0)
      this.#sink.reportUsage({ type: "usage", usage, model: this.#model });
    const settled = this.#sink.reportFinish(parseFinishReason(this.#reason ?? "end_turn").reason);
    return this.isCounted ? undefined : settled;
  }
}

/**
 * Measures the amount of text in a response. Usage is estimated from it if the response is
 * truncated.
 */
const DELTA = Buffer.from('"delta":{');

const KIND = Buffer.from('_delta","');

const VALUE = Buffer.from('":"');

const QUOTE = 34;

/**
 * Last letters of the names `text_delta`, `thinking_delta`, and `input_json_delta`. Signatures and
 * citations are not generated token by token, so they are not counted.
 */
const TEXT_DELTA_LAST_LETTERS = new Set([..."tgn"].map((letter) => letter.charCodeAt(0)));

/**
 * Returns the number of bytes of text in one delta event, found by the usual position of its
 * strings. Returns the size of the whole event if they are elsewhere.
 */
export function textBytesIn(b: Buffer, from: number, to: number): number {
  // Limits the search to this event, so that a missing member is not searched for in later events.
  const event = b.subarray(from, to);
  const delta = event.indexOf(DELTA);
  const kind = delta < 0 ? -1 : event.indexOf(KIND, delta);
  if (kind < 0) return event.length;
  if (!TEXT_DELTA_LAST_LETTERS.has(event[kind - 1]!)) return 0;
  const value = event.indexOf(VALUE, kind + KIND.length);
  const end = event.lastIndexOf(QUOTE);
  return value < 0 ? event.length : Math.max(0, end - value - VALUE.length);
}

const TEXTS = ["text", "thinking"];

/** Returns the number of bytes of text in the content of a whole response. */
export function textBytesOf(content: Json | undefined): number {
  let bytes = 0;
  for (const block of Array.isArray(content) ? (content as readonly Json[]) : []) {
    if (!isObject(block)) continue;
    for (const name of TEXTS)
      if (typeof block[name] === "string") bytes += Buffer.byteLength(block[name]);
    if (block["input"] !== undefined) bytes += Buffer.byteLength(JSON.stringify(block["input"]));
  }
  return bytes;
}
