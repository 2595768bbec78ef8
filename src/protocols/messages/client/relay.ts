// The verbatim lane: bytes pass as they came. Only `message_start` names the model, so only it is written into; the tap
// reads it and `message_delta`. Everything else, known to us or not, is recognised by its first bytes and never parsed.
import { eventObject } from "../../event-object.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type { Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import {
  dataOf,
  eventOf,
  frames,
  gather,
  renaming,
  type Frames,
  type Gather,
} from "../../sse/index.ts";
import { Templates, type Holes } from "../../sse/templates.ts";
import { fault as refusal } from "../server/fault.ts";
import { usageTo } from "../usage.ts";
import { isObject, text } from "../../json.ts";
import { throwFailure } from "../../failure/failure.ts";
import { CAP } from "./stream.ts";
import { Tap } from "./tap.ts";
import { wordsIn } from "./amount.ts";
import { relayWhole } from "./relay-whole.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay =>
  to.stream ? new StreamRelay(sink, to) : relayWhole(sink, to);

const LF = 10;

/** Deltas of one block differ in their words alone. */
const HOLES: Holes = {
  said: new Set(["text", "thinking", "partial_json"]),
  beside: new Set(),
  numbers: new Set(),
};
const STOP = Buffer.from('event: message_stop\ndata: {"type":"message_stop"}\n\n');

/** Blocks that say nothing in their start: their first delta is the first content. */
const SILENT = new Set(["text", "thinking", "tool_use", "server_tool_use", "mcp_tool_use"]);

class StreamRelay implements Relay {
  readonly #sink: RelaySink;
  readonly #to: AnswerContext;
  readonly #out: Gather;
  readonly #tap: Tap;
  readonly #rename: ReturnType<typeof renaming>;
  readonly #events: Frames;
  readonly #known = new Templates(HOLES);
  #over = false;
  /** The end as upstream named it, held back until the output is counted: this wire's clients read their counts off it. */
  #held: JsonObject | undefined;

  constructor(sink: RelaySink, to: AnswerContext) {
    this.#sink = sink;
    this.#to = to;
    this.#out = gather((b) => sink.bytes(b));
    this.#tap = new Tap(sink);
    this.#rename = renaming(["message", "model"], to.model);
    this.#events = frames(this.#event, CAP);
  }

  get between(): boolean {
    return this.#events.between;
  }

  push(chunk: Buffer): void {
    try {
      const from = this.#events.fresh ? this.#alike(chunk, 0) : 0;
      if (from < chunk.length) this.#events.push(from === 0 ? chunk : chunk.subarray(from));
    } finally {
      this.#out.flush();
      this.#tap.told();
      this.#known.left();
    }
  }

  /** Passes on the deltas from `from` on that are like one that was looked into, and tells how far they go. */
  #alike(b: Buffer, from: number): number {
    const known = this.#known;
    if (this.#over || b.length > CAP || !known.find(b, from)) return from;
    // Where lines end in CR, an event may end before its template does.
    if (known.hasCr(b)) return from;
    let end = from;
    do {
      end = known.end;
      this.#tap.content(known.words);
    } while (end < b.length && known.find(b, end));
    this.#out.range(b, from, end);
    return end;
  }

  end(): void {
    this.#events.end();
    if (!this.#over) this.#stop();
    this.#out.flush();
  }

  /** In words of ours, where upstream has named its end and has no good `message_stop`. */
  #stop(): void {
    if (!this.#tap.ended)
      fail("upstream", "The provider's stream ended before its answer did.", { code: "truncated" });
    this.#finish();
    this.#out.add(STOP);
  }

  fail(f: Fault): void {
    const said = JSON.stringify(refusal(f, this.#to).body);
    this.#sink.bytes(Buffer.from(`event: error\ndata: ${said}\n\n`));
  }

  // A field, so that an event costs one call.
  readonly #event = (b: Buffer, start: number, end: number): void => {
    // After its end a message has no more to say, and clients take a second one for a fault. Only the last line's
    // feed may still be on its way.
    if (this.#over) {
      if (b[start] === LF) this.#out.range(b, start, end);
      return;
    }
    const known = this.#alike(b, start);
    if (known > end) this.#events.took(known);
    // A last event whose end was forgotten has one line feed more.
    else if (known > start) this.#out.range(b, known, end);
    if (known > start) return;
    const named = nameOf(b, start, end);
    const told = named === undefined ? unnamed(b.subarray(start, end)) : undefined;
    const type = named ?? told?.type;
    switch (type) {
      case "content_block_delta":
        this.#tap.content(named === undefined ? end - start : this.#delta(b, start, end));
        break;
      case "content_block_start": {
        const block = jsonOf(b.subarray(start, end))["content_block"];
        if (isObject(block)) this.#tap.block(block);
        if (isObject(block) && !SILENT.has(text(block["type"]) ?? "")) this.#tap.content();
        break;
      }
      case "message_delta":
        if (this.#ends(jsonOf(b.subarray(start, end)))) return;
        break;
      case "message_stop":
        // Clients believe its data, whatever its line says.
        if (!saysStop(b.subarray(start, end))) return this.#stop();
        this.#finish();
        break;
      case "error":
        return throwFailure(jsonOf(b.subarray(start, end)));
      case "[DONE]":
        return;
    }
    if (told?.nameless) this.#out.add(Buffer.from(`event: ${type}\n`));
    if (type === "message_start") this.#start(b.subarray(start, end));
    else this.#out.range(b, start, end);
  };

  /** Its bytes of text; those that follow may be like it. */
  #delta(b: Buffer, start: number, end: number): number {
    const words = wordsIn(b, start, end);
    if (words === 0) return words;
    const event = b.subarray(start, end);
    const json = dataOf(event)?.from;
    if (json !== undefined) this.#known.learn(event, json, words);
    return words;
  }

  #start(event: Buffer): void {
    const start = jsonOf(event);
    const said = isObject(start["message"]) ? start["message"] : {};
    this.#tap.start(said);
    const data = dataOf(event);
    if (data && isObject(said["usage"])) return this.#rename(event, data.from, this.#out);
    // Its data is spread over lines, or lacks the counts that clients build upon: written anew, in one.
    const message = { usage: usageTo({}), ...said, model: this.#to.model };
    const anew = JSON.stringify({ ...start, message });
    this.#out.add(Buffer.from(`event: message_start\ndata: ${anew}\n\n`));
  }

  /** Whether the event stays behind: for counts to come, or because it was written anew. */
  #ends(delta: JsonObject): boolean {
    this.#tap.delta(delta);
    const held = this.#held;
    if (this.#tap.counted && !held) return false;
    const said = held ? (held["delta"] as Record<string, Json | undefined>) : {};
    this.#held = { ...delta, delta: Object.assign(said, inside(delta)) };
    if (!this.#tap.counted) return true;
    this.#out.add(ending(this.#held, undefined));
    this.#held = undefined;
    return true;
  }

  #finish(): void {
    // What stands before the terminal is the client's already; the terminal waits for the bill.
    this.#out.flush();
    this.#over = true;
    const settled = this.#tap.finish();
    if (this.#held || settled) this.#out.add(ending(this.#held, settled));
    this.#held = undefined;
  }
}

const inside = (event: JsonObject | undefined): JsonObject =>
  isObject(event?.["delta"]) ? event["delta"] : {};

/** `message_delta`, with the counts that were settled. */
function ending(held: JsonObject | undefined, settled: Usage | undefined): Buffer {
  const delta = { stop_reason: "end_turn", stop_sequence: null, ...inside(held) };
  const told = isObject(held?.["usage"]) ? held["usage"] : {};
  const usage = settled ? { ...told, ...usageTo(settled) } : told;
  const said = JSON.stringify({ type: "message_delta", ...held, delta, usage });
  return Buffer.from(`event: message_delta\ndata: ${said}\n\n`);
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
function unnamed(event: Buffer): { type: string; nameless: boolean } | undefined {
  const said = eventOf(event);
  if (!said) return undefined;
  if (said.event !== "") return { type: said.event, nameless: false };
  if (said.data === "[DONE]") return { type: said.data, nameless: false };
  const { type } = jsonOf(event);
  return typeof type === "string" && /^\w+$/.test(type) ? { type, nameless: true } : undefined;
}

function saysStop(event: Buffer): boolean {
  try {
    return jsonOf(event)["type"] === "message_stop";
  } catch {
    return false;
  }
}

const jsonOf = (event: Buffer): JsonObject => eventObject(eventOf(event)?.data ?? "");
