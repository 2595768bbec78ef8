// The verbatim lane: an upstream's bytes go on as they came, and what the gateway must know is read in passing. One value
// is written anew, the model's name. An event that differs only in its words from one that was read is not parsed (see
// templates.ts).
import { fail, type Fault } from "../../../model/error.ts";
import type {
  AnswerContext,
  FinishReason,
  JsonObject,
  Relay,
  RelaySink,
  Usage,
} from "../../../plugin/index.ts";
import {
  dataOf,
  EVENT_CAP,
  eventOf,
  frames,
  gather,
  needle,
  valueAt,
  type Frames,
  type Gather,
} from "../../sse/index.ts";
import type { ChatDialect } from "../dialect.ts";
import { finishOf } from "../finish.ts";
import { faultChunk } from "../server/fault.ts";
import { usageSeen, usageTo } from "../usage.ts";
import { list, object, text } from "../../json.ts";
import { wordsIn } from "./amount.ts";
import { recounted, retold } from "./counts.ts";
import { firstByte, isError, parsed, throwFault } from "./fault.ts";
import { relayWhole, restream } from "./relay-whole.ts";
import { Templates, type Holes } from "../../sse/templates.ts";
import { ModelRenamer } from "./model-renamer.ts";

const MODEL = [needle("model")];
const DONE = Buffer.from("data: [DONE]\n\n");

const CHUNK = "chat.completion.chunk";

const BRACE = 123;
const BRACKET = 91;

const HOLES: Holes = {
  said: new Set(["content", "reasoning_content", "reasoning", "refusal", "arguments", "input"]),
  beside: new Set(["obfuscation", "text"]),
  numbers: new Set(),
};

export const relay = (sink: RelaySink, to: AnswerContext, dialect: ChatDialect): Relay =>
  to.stream ? new Streamed(sink, to, dialect) : relayWhole(sink, to, dialect);

class Streamed implements Relay {
  readonly #sink: RelaySink;
  readonly #known = new Templates(HOLES);
  readonly #renamed: ModelRenamer;
  readonly #events: Frames;
  readonly #out: Gather;
  #over = false;
  #begun = false;
  /** Bytes of text since they were last told. */
  #words = 0;
  #plain: Buffer[] | undefined;
  readonly #to: AnswerContext;
  readonly #dialect: ChatDialect;
  readonly #asked: boolean;
  /** What every chunk says of its answer, for one of our own. */
  #frame: JsonObject;
  #started = false;
  /** The client has read its usage, where it looks for it. */
  #told = false;
  #committed = false;
  #calls = false;
  #reason: FinishReason | undefined;
  #tier: string | undefined;
  /** What the event at hand should say of its counts. */
  #better: JsonObject | undefined;

  constructor(sink: RelaySink, to: AnswerContext, dialect: ChatDialect) {
    this.#sink = sink;
    this.#to = to;
    this.#dialect = dialect;
    this.#renamed = new ModelRenamer(to.model);
    this.#out = gather((b) => sink.bytes(b));
    this.#events = frames((b, from, till) => this.#event(b, from, till));
    this.#asked = object(to.body["stream_options"])?.["include_usage"] === true;
    this.#frame = { id: `chatcmpl-${to.id}`, object: CHUNK, created: to.created };
  }

  get between(): boolean {
    return this.#events.between && !this.#over;
  }

  push(chunk: Buffer): void {
    if (!this.#begun && !this.#begins(chunk)) return;
    if (this.#plain) return void this.#plain.push(chunk);
    try {
      const from = this.#events.fresh ? this.#alike(chunk, 0) : 0;
      if (from < chunk.length) this.#events.push(from === 0 ? chunk : chunk.subarray(from));
    } finally {
      this.#out.flush();
      this.#tell();
      this.#known.left();
    }
  }

  end(): void {
    if (this.#plain)
      return restream(Buffer.concat(this.#plain), this.#sink, this.#to, this.#dialect);
    this.#events.end();
    if (!this.#over) this.#finish();
  }

  fail(fault: Fault): void {
    this.#over = true;
    this.#sink.bytes(Buffer.from(faultChunk(fault)));
  }

  /** Whether there is anything yet. */
  #begins(chunk: Buffer): boolean {
    const first = firstByte(chunk);
    if (first === undefined) return false;
    this.#begun = true;
    if (first === BRACE || first === BRACKET) this.#plain = [];
    if (first === 60)
      fail("upstream", "The provider answered with a page instead of a stream.", {
        code: "malformed_answer",
      });
    return true;
  }

  /** Passes on the events that are known from `from` on, and tells how far they go: nearly always to the chunk's end. */
  #alike(b: Buffer, from: number): number {
    if (this.#over || b.length > EVENT_CAP) return from;
    const known = this.#known;
    let end = from;
    while (end < b.length && known.find(b, end)) {
      // Where lines end in CR, an event may end before its template does.
      if (end === from && known.hasCr(b)) return from;
      end = known.end;
      this.#renamed.add(known.nameFrom, known.nameTo);
      this.#words += known.words;
    }
    if (end > from) this.#out.add(this.#renamed.of(b, from, end));
    return end;
  }

  #event(b: Buffer, from: number, till: number): void {
    // What stands after the end is not part of the answer.
    if (this.#over) return;
    const known = this.#known;
    const end = this.#alike(b, from);
    // Alone it may be one that was joined from several chunks, which are no place to go on in.
    if (end > till) this.#events.took(end);
    if (end > from) return;
    if (known.find(b, from) && known.end === till) {
      this.#renamed.add(known.nameFrom, known.nameTo);
      this.#words += known.words;
      return this.#out.add(this.#renamed.of(b, from, till));
    }
    let bytes = from === 0 && till === b.length ? b : b.subarray(from, till);
    const told = eventOf(bytes);
    if (!told) return this.#out.add(bytes);
    if (told.data === "[DONE]") return this.#finish();
    const chunk = parsed(told.data);
    if (!this.#read(chunk, told.event)) return;
    const json = dataOf(bytes)?.from;
    const better = this.#better;
    // Data over several lines is put together, and written in one line, as other upstreams do.
    if (json === undefined)
      return this.#out.add(
        Buffer.from(
          `data: ${JSON.stringify({ ...chunk, model: this.#to.model, ...(better && { usage: better }) })}\n\n`,
        ),
      );
    if (better) bytes = recounted(bytes, json, better);
    const model = valueAt(bytes, MODEL, json);
    if (!model) return this.#out.add(bytes);
    // Before the commit every event is looked at: an empty word in it may be the next one's first.
    if (this.#committed) known.learn(bytes, json, undefined, model);
    this.#renamed.add(model.from, model.to);
    this.#out.add(this.#renamed.of(bytes, 0, bytes.length));
  }

  /** Takes what is ours to know; false: the client did not ask for this event. */
  #read(chunk: JsonObject, name: string): boolean {
    if (name === "error" || isError(chunk)) throwFault(chunk);
    const id = text(chunk["id"]);
    if (!this.#started && id) {
      this.#started = true;
      this.#frame = { id, object: CHUNK, created: chunk["created"] ?? this.#to.created };
      this.#sink.start(id);
    }
    if (this.#tier === undefined) {
      this.#tier = text(chunk["service_tier"]);
      if (this.#tier !== undefined) this.#known.forget();
    }
    const choices = list(chunk["choices"]);
    for (const raw of choices) {
      const choice = object(raw);
      const delta = object(choice?.["delta"]);
      if (list(delta?.["tool_calls"]).length > 0) this.#calls = true;
      if (!this.#committed && delta && says(delta)) {
        this.#committed = true;
        this.#out.flush();
        this.#sink.content(0);
      }
      if (delta) this.#words += wordsIn(delta);
      const word = text(choice?.["finish_reason"]);
      if (word) {
        this.#reason = finishOf(word).reason;
        this.#known.forget();
      }
    }
    const usage = usageSeen(chunk, this.#dialect);
    if (usage) {
      this.#sink.usage(
        usage.tier === undefined && this.#tier !== undefined
          ? { ...usage, tier: this.#tier }
          : usage,
      );
      this.#known.forget();
    }
    this.#better = usage && retold(chunk, usage.usage);
    const counted = object(chunk["usage"]) !== undefined;
    this.#told ||= counted && usage !== undefined;
    // Counts that cannot be true are not passed on; the settled ones are written at the end.
    return choices.length > 0 || !counted || (this.#asked && usage !== undefined);
  }

  #tell(): void {
    if (this.#committed && this.#words > 0) this.#sink.content(this.#words);
    this.#words = 0;
  }

  #finish(): void {
    if (this.#reason === undefined)
      fail("upstream", "The provider's answer ended before it was finished.", {
        code: "truncated",
      });
    this.#over = true;
    this.#out.flush();
    this.#tell();
    const settled = this.#sink.finish(
      this.#calls && this.#reason === "stop" ? "tool_calls" : this.#reason!,
    );
    if (this.#asked && !this.#told && settled) this.#sink.bytes(this.#counts(settled));
    this.#sink.bytes(DONE);
  }

  #counts(usage: Usage): Buffer {
    const chunk = {
      ...this.#frame,
      model: this.#to.model,
      choices: [],
      usage: usageTo(usage),
    };
    return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
  }
}

const SAYS = [
  "content",
  "reasoning_content",
  "reasoning",
  "refusal",
  "tool_calls",
  "reasoning_details",
  "images",
  "audio",
  "function_call",
];

/** Whether a delta holds something that a client would show or run. */
const says = (delta: JsonObject): boolean =>
  SAYS.some((key) => {
    const value = delta[key];
    return (
      value !== undefined &&
      value !== null &&
      value !== "" &&
      !(Array.isArray(value) && value.length === 0)
    );
  });
