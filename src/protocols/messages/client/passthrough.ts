// Passthrough mode: bytes pass as they came. Only `message_start` names the model, so only it is written into; the tap
// reads it and `message_delta`. Everything else, known to us or not, is recognised by its first bytes and never parsed.
import { parseEventObject } from "../../parse-event-object.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import {
  findEventData,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
  createStringReplacer,
  type EventSplitter,
  type WriteBatch,
} from "../../sse/index.ts";
import { EventTemplates, type TemplateFields } from "../../sse/event-templates.ts";
import { encodeFault as refusal } from "../server/fault.ts";
import { usageTo } from "../usage.ts";
import { isObject, asText } from "../../json-values.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { MAX_EVENT_BYTES } from "./stream.ts";
import { UsageTap } from "./usage-tap.ts";
import { textBytesIn } from "./text-size.ts";
import { createResponsePassthrough } from "./passthrough-response.ts";

export const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  to.stream ? new StreamPassthrough(sink, to) : createResponsePassthrough(sink, to);

const LF = 10;

/** Deltas of one block differ in their words alone. */
const TEMPLATE_FIELDS: TemplateFields = {
  responseText: new Set(["text", "thinking", "partial_json"]),
  otherText: new Set(),
  numbers: new Set(),
};
const STOP = Buffer.from('event: message_stop\ndata: {"type":"message_stop"}\n\n');

/** Blocks that say nothing in their start: their first delta is the first content. */
const EMPTY_START_BLOCKS = new Set([
  "text",
  "thinking",
  "tool_use",
  "server_tool_use",
  "mcp_tool_use",
]);

class StreamPassthrough implements PassthroughStream {
  readonly #sink: PassthroughSink;
  readonly #to: ResponseContext;
  readonly #out: WriteBatch;
  readonly #tap: UsageTap;
  readonly #rename: ReturnType<typeof createStringReplacer>;
  readonly #events: EventSplitter;
  readonly #templates = new EventTemplates(TEMPLATE_FIELDS);
  #over = false;
  /** The end as upstream named it, held back until the output is counted: this wire's clients read their counts off it. */
  #finalDelta: JsonObject | undefined;

  constructor(sink: PassthroughSink, to: ResponseContext) {
    this.#sink = sink;
    this.#to = to;
    this.#out = createWriteBatch((b) => sink.write(b));
    this.#tap = new UsageTap(sink);
    this.#rename = createStringReplacer(["message", "model"], to.model);
    this.#events = createEventSplitter(this.#event, MAX_EVENT_BYTES);
  }

  get isBetweenEvents(): boolean {
    return this.#events.isBetweenEvents;
  }

  push(chunk: Buffer): void {
    try {
      const from = this.#events.isAtEventStart ? this.#passKnown(chunk, 0) : 0;
      if (from < chunk.length) this.#events.push(from === 0 ? chunk : chunk.subarray(from));
    } finally {
      this.#out.flush();
      this.#tap.reportText();
      this.#templates.endChunk();
    }
  }

  /** Passes on the deltas from `from` on that are like one that was looked into, and tells how far they go. */
  #passKnown(b: Buffer, from: number): number {
    const known = this.#templates;
    if (this.#over || b.length > MAX_EVENT_BYTES || !known.find(b, from)) return from;
    // Where lines end in CR, an event may end before its template does.
    if (known.hasCr(b)) return from;
    let end = from;
    do {
      end = known.end;
      this.#tap.content(known.textBytes);
    } while (end < b.length && known.find(b, end));
    this.#out.addRange(b, from, end);
    return end;
  }

  end(): void {
    this.#events.end();
    if (!this.#over) this.#stop();
    this.#out.flush();
  }

  /** In words of ours, where upstream has named its end and has no good `message_stop`. */
  #stop(): void {
    if (!this.#tap.isEnded)
      fail("upstream", "The provider's stream ended before its answer did.", { code: "truncated" });
    this.#finish();
    this.#out.add(STOP);
  }

  writeFault(f: Fault): void {
    const errorBody = JSON.stringify(refusal(f, this.#to).body);
    this.#sink.write(Buffer.from(`event: error\ndata: ${errorBody}\n\n`));
  }

  // A field, so that an event costs one call.
  readonly #event = (b: Buffer, start: number, end: number): void => {
    // After its end a message has no more to say, and clients take a second one for a fault. Only the last line's
    // feed may still be on its way.
    if (this.#over) {
      if (b[start] === LF) this.#out.addRange(b, start, end);
      return;
    }
    const known = this.#passKnown(b, start);
    if (known > end) this.#events.skipTo(known);
    // A last event whose end was forgotten has one line feed more.
    else if (known > start) this.#out.addRange(b, known, end);
    if (known > start) return;
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
        // Clients believe its data, whatever its line says.
        if (!hasStopReason(b.subarray(start, end))) return this.#stop();
        this.#finish();
        break;
      case "error":
        return throwParsedError(jsonOf(b.subarray(start, end)));
      case "[DONE]":
        return;
    }
    if (unnamedEvent?.nameless) this.#out.add(Buffer.from(`event: ${type}\n`));
    if (type === "message_start") this.#start(b.subarray(start, end));
    else this.#out.addRange(b, start, end);
  };

  /** Its bytes of text; those that follow may be like it. */
  #delta(b: Buffer, start: number, end: number): number {
    const words = textBytesIn(b, start, end);
    if (words === 0) return words;
    const event = b.subarray(start, end);
    const json = findEventData(event)?.from;
    if (json !== undefined) this.#templates.learn(event, json, words);
    return words;
  }

  #start(event: Buffer): void {
    const start = jsonOf(event);
    const startMessage = isObject(start["message"]) ? start["message"] : {};
    this.#tap.start(startMessage);
    const data = findEventData(event);
    if (data && isObject(startMessage["usage"])) return this.#rename(event, data.from, this.#out);
    // Its data is spread over lines, or lacks the counts that clients build upon: written anew, in one.
    const message = { usage: usageTo({}), ...startMessage, model: this.#to.model };
    const anew = JSON.stringify({ ...start, message });
    this.#out.add(Buffer.from(`event: message_start\ndata: ${anew}\n\n`));
  }

  /** Whether the event stays behind: for counts to come, or because it was written anew. */
  #ends(delta: JsonObject): boolean {
    this.#tap.delta(delta);
    const held = this.#finalDelta;
    if (this.#tap.isCounted && !held) return false;
    const previousDelta = held ? (held["delta"] as Record<string, Json | undefined>) : {};
    this.#finalDelta = { ...delta, delta: Object.assign(previousDelta, inside(delta)) };
    if (!this.#tap.isCounted) return true;
    this.#out.add(ending(this.#finalDelta, undefined));
    this.#finalDelta = undefined;
    return true;
  }

  #finish(): void {
    // What stands before the terminal is the client's already; the terminal waits for the bill.
    this.#out.flush();
    this.#over = true;
    const settled = this.#tap.finish();
    if (this.#finalDelta || settled) this.#out.add(ending(this.#finalDelta, settled));
    this.#finalDelta = undefined;
  }
}

const inside = (event: JsonObject | undefined): JsonObject =>
  isObject(event?.["delta"]) ? event["delta"] : {};

/** `message_delta`, with the counts that were settled. */
function ending(held: JsonObject | undefined, settled: Usage | undefined): Buffer {
  const delta = { stop_reason: "end_turn", stop_sequence: null, ...inside(held) };
  const usageSoFar = isObject(held?.["usage"]) ? held["usage"] : {};
  const usage = settled ? { ...usageSoFar, ...usageTo(settled) } : usageSoFar;
  const json = JSON.stringify({ type: "message_delta", ...held, delta, usage });
  return Buffer.from(`event: message_delta\ndata: ${json}\n\n`);
}

const NAME = Buffer.from("event:");
/** Most of a stream: told by one native comparison. */
const DELTA = Buffer.from("event: content_block_delta\n");

const begins = (b: Buffer, from: number, end: number, with_: Buffer): boolean =>
  end - from >= with_.length && b.compare(with_, 0, with_.length, from, from + with_.length) === 0;

/** The event's name, where its first line tells it: there it stands in all but broken streams. */
function nameOf(b: Buffer, from: number, end: number): string | undefined {
  if (begins(b, from, end, DELTA)) return "content_block_delta";
  if (!begins(b, from, end, NAME)) return undefined;
  from += NAME.length;
  if (b[from] === 32) from++;
  let to = from;
  while (to < end && b[to]! > 32) to++;
  return b.toString("latin1", from, to);
}

/** Where the name does not come first. Without any, this wire's clients do not see the event: its data tells what to call it. */
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
