// Passthrough mode: forwards the stream's bytes unchanged. Only `message_start` contains the model
// name, so only that event is edited. The usage tap reads `message_start` and `message_delta`. All
// other events, known or unknown, are recognized by their first bytes and never parsed.
import { fail, type Fault } from "../../../model/error.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { isObject, asText } from "../../json-values.ts";
import { withCost } from "../../cost-in-usage.ts";
import { writeJson, createResponsePassthrough } from "../../passthrough.ts";
import { EventTemplates, type TemplateFields } from "../../sse/event-templates.ts";
import {
  findEventData,
  parseEventText,
  createStringReplacer,
  encodeKey,
  findValue,
  TemplatePassthrough,
  replaceModelName,
} from "../../sse/index.ts";
import { parseEventObject } from "../../sse/event-splitter.ts";
import { encodeFault } from "../server/fault.ts";
import { usageTo } from "../usage.ts";
import { MAX_EVENT_BYTES, parseMessage } from "./response.ts";
import { UsageTap, textBytesIn, textBytesOf } from "./usage-tap.ts";

export const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  to.stream ? new MessageStreamPassthrough(sink, to) : passResponse(sink, to);

const LF = 10;

/** Deltas of one block differ only in these members. */
const TEMPLATE_FIELDS: TemplateFields = {
  responseText: new Set(["text", "thinking", "partial_json"]),
  otherText: new Set(),
  numbers: new Set(),
};

const STOP = Buffer.from('event: message_stop\ndata: {"type":"message_stop"}\n\n');

/** Blocks whose start event has no content. Their first delta is the first token. */
const EMPTY_START_BLOCKS = new Set([
  "text",
  "thinking",
  "tool_use",
  "server_tool_use",
  "mcp_tool_use",
]);

class MessageStreamPassthrough extends TemplatePassthrough {
  readonly #to: ResponseContext;
  readonly #tap: UsageTap;
  readonly #rename: ReturnType<typeof createStringReplacer>;
  /**
   * The provider's final `message_delta`, held back until output tokens are counted, because
   * clients read the usage from this event.
   */
  #finalDelta: JsonObject | undefined;

  constructor(sink: PassthroughSink, to: ResponseContext) {
    super(sink, TEMPLATE_FIELDS, MAX_EVENT_BYTES);
    this.#to = to;
    this.#tap = new UsageTap(sink);
    this.#rename = createStringReplacer(["message", "model"], to.model);
  }

  protected override afterChunk(): void {
    this.#tap.reportText();
    super.afterChunk();
  }

  protected onKnownEvent(known: EventTemplates): void {
    this.#tap.content(known.textBytes);
  }

  /**
   * Writes the end of the stream if the provider has sent a stop reason but no valid
   * `message_stop`.
   */
  protected onEnd(): void {
    if (!this.#tap.isEnded)
      fail("upstream", "The provider's stream ended before its response was complete.", {
        code: "truncated",
      });
    this.#finish();
    this.out.add(STOP);
  }

  writeFault(f: Fault): void {
    const errorBody = JSON.stringify(encodeFault(f, this.#to).body);
    this.sink.write(Buffer.from(`event: error\ndata: ${errorBody}\n\n`));
  }

  protected override onEvent(b: Buffer, start: number, end: number): void {
    if (!this.isOver) return super.onEvent(b, start, end);
    // After its end a message has no more events, and clients treat a second end as an error. Only
    // the line feed of the last line may still arrive.
    if (b[start] === LF) this.out.addRange(b, start, end);
  }

  protected onNewEvent(b: Buffer, start: number, end: number): void {
    const named = nameOf(b, start, end);
    const unnamedEvent =
      named === undefined ? eventTypeFromData(b.subarray(start, end)) : undefined;
    const type = named ?? unnamedEvent?.type;
    switch (type) {
      case "content_block_delta":
        this.#tap.content(named === undefined ? end - start : this.#delta(b, start, end));
        break;
      case "content_block_start": {
        const block = jsonOf(b.subarray(start, end))["content_block"];
        if (isObject(block)) this.#tap.block(block);
        if (isObject(block) && !EMPTY_START_BLOCKS.has(asText(block["type"]) ?? ""))
          this.#tap.content();
        break;
      }
      case "message_delta":
        if (this.#ends(jsonOf(b.subarray(start, end)))) return;
        break;
      case "message_stop":
        // Clients read the event's data and ignore its `event:` line.
        if (!hasStopReason(b.subarray(start, end))) return this.onEnd();
        this.#finish();
        break;
      case "error":
        return throwParsedError(jsonOf(b.subarray(start, end)));
      case "[DONE]":
        return;
    }
    if (unnamedEvent?.nameless) this.out.add(Buffer.from(`event: ${type}\n`));
    if (type === "message_start") this.#start(b.subarray(start, end));
    else this.out.addRange(b, start, end);
  }

  /**
   * Returns the number of bytes of text in a delta, and stores the shape of the delta so that
   * similar events are recognized.
   */
  #delta(b: Buffer, start: number, end: number): number {
    const words = textBytesIn(b, start, end);
    if (words === 0) return words;
    const event = b.subarray(start, end);
    const json = findEventData(event)?.from;
    if (json !== undefined) this.templates.learn(event, json, words);
    return words;
  }

  #start(event: Buffer): void {
    const start = jsonOf(event);
    const startMessage = isObject(start["message"]) ? start["message"] : {};
    this.#tap.start(startMessage);
    const data = findEventData(event);
    if (data && isObject(startMessage["usage"])) return this.#rename(event, data.from, this.out);
    // The data spans several lines or lacks the usage that clients rely on, so the event is encoded
    // again in one line.
    const message = { usage: usageTo({}), ...startMessage, model: this.#to.model };
    const anew = JSON.stringify({ ...start, message });
    this.out.add(Buffer.from(`event: message_start\ndata: ${anew}\n\n`));
  }

  /**
   * Handles a `message_delta`. Returns whether the event is not forwarded, because it waits for
   * usage or was encoded again.
   */
  #ends(delta: JsonObject): boolean {
    this.#tap.delta(delta);
    const held = this.#finalDelta;
    const waits = !this.#tap.isCounted || this.#to.includesCost === true;
    if (!waits && !held) return false;
    const previousDelta = held ? (held["delta"] as Record<string, Json | undefined>) : {};
    this.#finalDelta = { ...held, ...delta, delta: Object.assign(previousDelta, inside(delta)) };
    if (waits) return true;
    this.out.add(ending(this.#finalDelta, undefined, this.#to));
    this.#finalDelta = undefined;
    return true;
  }

  #finish(): void {
    // All events before the final events are written now. The final events wait until usage is
    // settled.
    this.out.flush();
    this.isOver = true;
    const settled = this.#tap.finish();
    if (this.#finalDelta || settled) this.out.add(ending(this.#finalDelta, settled, this.#to));
    this.#finalDelta = undefined;
  }
}

const inside = (event: JsonObject | undefined): JsonObject =>
  isObject(event?.["delta"]) ? event["delta"] : {};

/** Returns a `message_delta` with the settled usage. */
function ending(
  held: JsonObject | undefined,
  settled: Usage | undefined,
  to: ResponseContext,
): Buffer {
  const delta = { stop_reason: "end_turn", stop_sequence: null, ...inside(held) };
  const usageSoFar = isObject(held?.["usage"]) ? held["usage"] : {};
  const usage = withCost(settled ? { ...usageSoFar, ...usageTo(settled) } : usageSoFar, to);
  const json = JSON.stringify({ type: "message_delta", ...held, delta, usage });
  return Buffer.from(`event: message_delta\ndata: ${json}\n\n`);
}

const NAME = Buffer.from("event:");

/** First line of most events in a stream. One native comparison recognizes it. */
const DELTA = Buffer.from("event: content_block_delta\n");

const begins = (b: Buffer, from: number, end: number, with_: Buffer): boolean =>
  end - from >= with_.length && b.compare(with_, 0, with_.length, from, from + with_.length) === 0;

/**
 * Returns the event's name if its first line has one. Only broken streams contain the name
 * elsewhere.
 */
function nameOf(b: Buffer, from: number, end: number): string | undefined {
  if (begins(b, from, end, DELTA)) return "content_block_delta";
  if (!begins(b, from, end, NAME)) return undefined;
  from += NAME.length;
  if (b[from] === 32) from++;
  let to = from;
  while (to < end && b[to]! > 32) to++;
  return b.toString("latin1", from, to);
}

/**
 * Returns the type of an event whose first line is not its name. Clients ignore an event without a
 * name, so in that case the name is taken from its data.
 */
function eventTypeFromData(event: Buffer): { type: string; nameless: boolean } | undefined {
  const parsedEvent = parseEventText(event);
  if (!parsedEvent) return undefined;
  if (parsedEvent.event !== "") return { type: parsedEvent.event, nameless: false };
  if (parsedEvent.data === "[DONE]") return { type: parsedEvent.data, nameless: false };
  const { type } = jsonOf(event);
  return typeof type === "string" && /^\w+$/.test(type) ? { type, nameless: true } : undefined;
}

function hasStopReason(event: Buffer): boolean {
  try {
    return jsonOf(event)["type"] === "message_stop";
  } catch {
    return false;
  }
}

const jsonOf = (event: Buffer): JsonObject => parseEventObject(parseEventText(event)?.data ?? "");

/** Passthrough mode of a non-streaming response, which arrives in one piece. */
function passResponse(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  const tap = new UsageTap(sink);
  const forward = (body: Buffer): void => {
    const answer = parseMessage(body);
    tap.response(answer);
    tap.content(textBytesOf(answer["content"]));
    const settled = tap.finish();
    const usage = settled ? usageTo(settled) : answer["usage"];
    if (settled || (to.includesCost === true && isObject(usage)))
      return writeJson(sink, {
        ...answer,
        model: to.model,
        usage: withCost(usage as JsonObject, to),
      });
    const at = findValue(body, [MODEL], body.indexOf(123));
    // If the model name occurs twice with different values, the gateway reads the last one, but
    // other readers may use the first.
    if (!at || body.toString("utf8", at.from, at.to) !== JSON.stringify(answer["model"]))
      return writeJson(sink, { ...answer, model: to.model });
    replaceModelName(body, to.model, (b) => sink.write(b));
  };
  return createResponsePassthrough(sink, forward, (fault) => encodeFault(fault, to).body);
}

const MODEL = encodeKey("model");
