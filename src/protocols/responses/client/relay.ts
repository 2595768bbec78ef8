// The verbatim lane: an upstream's bytes on their way to a client of the same protocol. Only the model's name is changed,
// wherever a response object stands. Errors are taken out and told in the gateway's words, so
// that another candidate may still answer.
import { lastingPart, lastingPiece } from "../../../lib/lasting.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { dataOf, frames, gather, renaming, type Frames, type Gather } from "../../sse/index.ts";
import { Templates, type Holes } from "../../sse/templates.ts";
import { beginningOf, dataIn, DONE_TYPE, endsInData, sequenceIn, typeOf } from "./event-bytes.ts";
import { isText, wordsIn, wordsOf } from "./amount.ts";
import { CAP } from "./stream.ts";
import { throwFailure } from "../../failure/failure.ts";
import { failure } from "../server/fault.ts";
import { responseObject } from "../server/object.ts";
import { isFailure, reasonOf, relayWhole, report } from "./relay-whole.ts";
import { ResponsesToolCounts } from "../tool-counts.ts";
import { usageTo } from "../usage.ts";
import { object, text } from "../../json.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay =>
  to.stream ? new StreamRelay(sink, to) : relayWhole(sink, to);

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

/** Deltas of one part differ in their words, and are numbered. */
const HOLES: Holes = {
  said: new Set(["delta"]),
  beside: new Set(["obfuscation"]),
  numbers: new Set(["sequence_number"]),
};

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
  readonly #known = new Templates(HOLES);
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
  readonly #tools = new ResponsesToolCounts();
  #model: string | undefined;

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
      const from = this.#events.fresh ? this.#alikes(chunk, 0) : 0;
      if (from < chunk.length) this.#events.push(from === 0 ? chunk : chunk.subarray(from));
    } finally {
      this.#out.flush();
      this.#tell();
      this.#known.left();
      this.#keep();
    }
  }

  /** Passes on the deltas from `from` on that are like one that was looked into, and tells how far they go. */
  #alikes(b: Buffer, from: number): number {
    const known = this.#known;
    if (this.#over || b.length > CAP || !known.find(b, from)) return from;
    // Where lines end in CR, an event may end before its template does.
    if (known.hasCr(b)) return from;
    let [last, end] = [from, from];
    do {
      last = end;
      end = known.end;
      this.#words += known.words;
    } while (end < b.length && known.find(b, end));
    this.#remember(b, last, end);
    this.#out.range(b, from, end);
    return end;
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
    const known = this.#alikes(b, from);
    if (known > till) this.#events.took(known);
    // A last event whose end was forgotten has one line feed more.
    else if (known > from) this.#out.range(b, known, till);
    if (known > from) return;
    const event = b.subarray(from, till);
    const json = dataOf(event)?.from ?? -1;
    const alike = this.#alike;
    if (
      alike !== undefined &&
      json >= 0 &&
      till - from > alike.begins.length &&
      endsInData(b, till) &&
      b.compare(alike.begins, 0, alike.begins.length, from, from + alike.begins.length) === 0
    ) {
      this.#remember(b, from, till);
      if (alike.isText) this.#words += this.#delta(event, json, alike.begins.length);
      return this.#out.range(b, from, till);
    }
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

  /** The piece goes, and its last event stays. */
  #keep(): void {
    if (!this.#last) return;
    const last = lastingPart(this.#last, this.#lastFrom, this.#lastTill);
    this.#remember(last, 0, last.length);
  }

  #begin(event: Buffer): void {
    if (this.#first) return;
    const response = object(dataIn(event)["response"]);
    const id = text(response?.["id"]);
    this.#model = text(response?.["model"]);
    this.#first = lastingPiece([event]);
    if (id !== undefined) this.#sink.start(id);
  }

  #hear(type: string, event: Buffer, json: number): void {
    this.#commit();
    if (type === "response.output_item.done") this.#done(dataIn(event)["item"] ?? null);
    if (!type.endsWith(".delta")) return;
    this.#heard = true;
    const begins = beginningOf(event, json);
    const said = isText(type);
    this.#alike = begins && { begins: lastingPiece([begins]), isText: said };
    if (said) this.#words += wordsIn(event, begins ? begins.length : 0, event.length);
  }

  #done(item: Json): void {
    // What came in no delta comes whole.
    if (!this.#heard) this.#words += wordsOf([item]);
    const tool = object(item);
    if (!tool) return;
    if (!this.#tools.item(tool)) return;
    const usage = this.#tools.usage(undefined);
    this.#sink.usage({ type: "usage", usage, model: this.#model });
  }

  /** Its bytes of text; those that follow may be like it. */
  #delta(event: Buffer, json: number, begins: number): number {
    const words = wordsIn(event, begins, event.length);
    this.#known.learn(event, json, words);
    return words;
  }

  #end(event: Buffer, json: number, data: JsonObject): void {
    const response = object(data["response"]) ?? {};
    const type = text(data["type"]) ?? typeOf(event, json);
    const counted = report(response, this.#sink, this.#tools.usage(response));
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

/** Something of the answer itself, after which no other answer can take its place. */
const isContent = (type: string): boolean =>
  type.endsWith(".delta") ||
  type === "response.output_item.done" ||
  type === "response.image_generation_call.partial_image";
