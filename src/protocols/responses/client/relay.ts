// The verbatim lane: an upstream's bytes on their way to a client of the same protocol. Only the model's name is changed,
// wherever a response object stands. Errors are taken out and told in the gateway's words, so
// that another candidate may still answer.
import { eventObject } from "../../event-object.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import {
  dataOf,
  eventOf,
  frames,
  gather,
  needle,
  renaming,
  valueAt,
  type Frames,
  type Gather,
} from "../../sse/index.ts";
import { isText, wordsIn, wordsOf } from "./amount.ts";
import { CAP } from "./stream.ts";
import { throwFailure } from "../../failure/failure.ts";
import { failure } from "../server/fault.ts";
import { responseObject } from "../server/object.ts";
import { isFailure, reasonOf, relayWhole, report } from "./relay-whole.ts";
import { usageTo } from "../usage.ts";
import { object, parsed, text } from "../../json.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay =>
  to.stream ? new StreamRelay(sink, to) : relayWhole(sink, to);

const TYPE = [needle("type")];
const DONE = Buffer.from("data: [DONE]\n\n");
const END = Buffer.concat([Buffer.from("\n\n"), DONE]);

/** Events in which a response stands before its end. */
const BEGUN = new Set(["response.created", "response.in_progress", "response.queued"]);
const ENDED = new Set([
  "response.completed",
  "response.incomplete",
  "response.done",
  "response.failed",
  "response.cancelled",
]);

/** How the deltas of a stream begin: what begins alike is one, and need not be looked into. */
interface DeltaBeginning {
  begins: Buffer;
  isText: boolean;
}

class StreamRelay implements Relay {
  readonly #sink: RelaySink;
  readonly #to: AnswerContext;
  readonly #out: Gather;
  readonly #rename: ReturnType<typeof renaming>;
  readonly #events: Frames;
  /** The event that announced the response, and the last one: what a failure has to go on with. */
  #first: Buffer | undefined;
  #last: Buffer | undefined;
  #lastFrom = 0;
  #lastTill = 0;
  #committed = false;
  #over = false;
  #alike: DeltaBeginning | undefined;
  /** Bytes of text since they were last told. */
  #words = 0;
  #heard = false;

  constructor(sink: RelaySink, to: AnswerContext) {
    this.#sink = sink;
    this.#to = to;
    this.#out = gather((bytes) => sink.bytes(bytes));
    this.#rename = renaming(["response", "model"], to.model);
    this.#events = frames(this.#event, CAP);
  }

  get between(): boolean {
    return this.#events.between && !this.#over;
  }

  push(chunk: Buffer): void {
    try {
      this.#events.push(chunk);
    } finally {
      this.#out.flush();
      this.#tell();
    }
  }

  end(): void {
    this.#events.end();
    this.#out.flush();
    if (!this.#over)
      fail("upstream", "The provider's stream ended before its answer did.", {
        code: "truncated",
      });
  }

  fail(f: Fault): void {
    if (this.#over) return;
    this.#over = true;
    const { event, error } = failure(f, this.#to);
    const last = this.#last?.subarray(this.#lastFrom, this.#lastTill);
    let number = last ? sequenceIn(last) + 1 : 0;
    const write = (type: string, fields: JsonObject) => {
      const said = JSON.stringify({ type, sequence_number: number++, ...fields });
      this.#sink.bytes(Buffer.from(`event: ${type}\ndata: ${said}\n\n`));
    };
    const known = this.#first && object(dataIn(this.#first)["response"]);
    const now = responseObject(this.#to).whole({ status: "failed", output: [], error });
    const { status, model } = now;
    const response = known
      ? { ...known, status, model, error, completed_at: null }
      : (now as JsonObject);
    if (!this.#first)
      write("response.created", {
        response: { ...response, status: "in_progress", error: null },
      });
    write("error", event);
    write("response.failed", { response });
    this.#sink.bytes(DONE);
  }

  // A field, so that an event costs one call.
  readonly #event = (b: Buffer, from: number, till: number): void => {
    if (this.#over) return;
    const alike = this.#alike;
    if (
      alike !== undefined &&
      till - from > alike.begins.length &&
      endsInData(b, till) &&
      b.compare(alike.begins, 0, alike.begins.length, from, from + alike.begins.length) === 0
    ) {
      this.#remember(b, from, till);
      if (alike.isText) this.#words += wordsIn(b, from + alike.begins.length, till);
      return this.#out.range(b, from, till);
    }
    const event = b.subarray(from, till);
    const json = dataOf(event)?.from ?? -1;
    const type = typeOf(event, json);
    if (type !== "") this.#remember(b, from, till);
    if (BEGUN.has(type)) {
      this.#begin(event);
      return json < 0 ? this.#out.range(b, from, till) : this.#rename(event, json, this.#out);
    }
    if (ENDED.has(type)) {
      this.#out.flush();
      return this.#end(event, json, dataIn(event));
    }
    if (type === "error" || type === DONE_TYPE) {
      this.#out.flush();
      return type === "error" ? throwFailure(dataIn(event)) : undefined;
    }
    if (isContent(type)) this.#hear(type, event, json);
    this.#out.range(b, from, till);
  };

  #remember(b: Buffer, from: number, till: number): void {
    this.#last = b;
    this.#lastFrom = from;
    this.#lastTill = till;
  }

  #begin(event: Buffer): void {
    if (this.#first) return;
    const id = text(object(dataIn(event)["response"])?.["id"]);
    this.#first = event;
    if (id !== undefined) this.#sink.start(id);
  }

  #hear(type: string, event: Buffer, json: number): void {
    this.#commit();
    // What came in no delta comes whole.
    if (!this.#heard && type === "response.output_item.done")
      this.#words += wordsOf([dataIn(event)["item"] ?? null]);
    if (!type.endsWith(".delta")) return;
    this.#heard = true;
    const begins = beginningOf(event, json);
    const said = isText(type);
    this.#alike = begins && { begins, isText: said };
    if (said) this.#words += wordsIn(event, begins ? begins.length : 0, event.length);
  }

  #end(event: Buffer, json: number, data: JsonObject): void {
    const response = object(data["response"]) ?? {};
    const type = text(data["type"]) ?? typeOf(event, json);
    const counted = report(response, this.#sink);
    if (isFailure(response) || type === "response.failed" || type === "response.cancelled")
      throwFailure({ error: response["error"] ?? { message: `The provider ended with ${type}.` } });
    this.#commit();
    this.#tell();
    this.#over = true;
    const settled = this.#sink.finish(reasonOf(response));
    if (settled && !counted) {
      const said = {
        ...data,
        type,
        response: { ...response, model: this.#to.model, usage: usageTo(settled) },
      };
      this.#out.add(Buffer.from(`event: ${type}\ndata: ${JSON.stringify(said)}`));
      return this.#out.add(END);
    }
    // What follows is the end of this protocol's streams, whether this upstream says so or not, and nothing else.
    this.#rename(event.subarray(0, lengthOf(event)), json, this.#out);
    this.#out.add(END);
  }

  #commit(): void {
    if (this.#committed) return;
    this.#committed = true;
    this.#sink.content(0);
  }

  #tell(): void {
    if (this.#words > 0) this.#sink.content(this.#words);
    this.#words = 0;
  }
}

/** Without its line ends, of which a split may have left one behind. */
function lengthOf(event: Buffer): number {
  let length = event.length;
  while (event[length - 1] === 10 || event[length - 1] === 13) length--;
  return length;
}

const DONE_TYPE = "[DONE]";

/** Up to the end of its type, where that comes first of all; undefined where it does not. */
function beginningOf(event: Buffer, json: number): Buffer | undefined {
  const type = json < 0 ? undefined : valueAt(event, TYPE, json);
  if (!type || event.subarray(json, type.from).includes(COMMA)) return undefined;
  return Buffer.from(event.subarray(0, type.to));
}
const COMMA = 44;

/** "" for a comment. The name stands in the data, first as a rule; the event's own line is only a copy of it. */
function typeOf(event: Buffer, json: number): string {
  if (json < 0) {
    const read = eventOf(event);
    if (!read) return "";
    return read.data === DONE_TYPE ? DONE_TYPE : (text(parsed(read.data)?.["type"]) ?? read.event);
  }
  if (event[json] === 91) return DONE_TYPE;
  // Where its data cannot be read, its line is all that a client has.
  if (ERROR_LINES.some((line) => event.includes(line)) && eventOf(event)?.event === "error")
    return "error";
  const type = valueAt(event, TYPE, json);
  if (type) return event.toString("latin1", type.from + 1, type.to - 1);
  return eventOf(event)?.event || (dataIn(event)["error"] ? "error" : "unknown");
}

/** A line may have a space behind its colon. */
const ERROR_LINES = ["event: error", "event:error"].map((line) => Buffer.from(line));

/** What begins alike may still have other lines behind its data. */
function endsInData(b: Buffer, till: number): boolean {
  let last = till - 1;
  while (b[last] === 10 || b[last] === 13) last--;
  return b[last] === CLOSED;
}
const CLOSED = 125;

const dataIn = (event: Buffer): JsonObject => eventObject(eventOf(event)?.data ?? "");

/** Looked for in the bytes: a failure is told of an event that cannot be read, too. */
function sequenceIn(event: Buffer): number {
  const at = valueAt(event, SEQUENCE, event.indexOf(BRACE));
  const said = at ? Number(event.toString("latin1", at.from, at.to)) : NaN;
  return Number.isSafeInteger(said) ? said : 0;
}
const SEQUENCE = [needle("sequence_number")];
const BRACE = 123;

/** Something of the answer itself, after which no other answer can take its place. */
const isContent = (type: string): boolean =>
  type.endsWith(".delta") ||
  type === "response.output_item.done" ||
  type === "response.image_generation_call.partial_image";
