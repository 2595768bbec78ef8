// Forwards a provider's stream in passthrough mode. Bytes are forwarded unchanged, except for the
// model name, and the gateway reads the data it needs along the way. An event that differs only in
// its text from an event read before is not parsed (see `EventTemplates`).
import { fail, type Fault } from "../../../model/error.ts";
import type {
  ResponseContext,
  FinishReason,
  JsonObject,
  PassthroughStream,
  PassthroughSink,
  Usage,
} from "../../../plugin/index.ts";
import {
  findEventData,
  MAX_EVENT_BYTES,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
  encodeKey,
  findValue,
  type EventSplitter,
  type WriteBatch,
} from "../../sse/index.ts";
import type { ChatDialect } from "../dialect.ts";
import { parseFinishReason } from "../constants.ts";
import { faultChunk } from "../server/response-common.ts";
import { usageSeen, usageTo } from "../usage.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import {
  textBytesIn,
  withUsage,
  correctedUsage,
  createResponsePassthrough,
  responseAsStream,
} from "./passthrough-response.ts";
import { firstByte, isErrorObject, parsed, throwFault } from "./fault.ts";
import { EventTemplates, type TemplateFields } from "../../sse/event-templates.ts";
import { ModelRenamer } from "./model-renamer.ts";

const MODEL = [encodeKey("model")];
const DONE = Buffer.from("data: [DONE]\n\n");

const CHUNK = "chat.completion.chunk";

const BRACE = 123;
const BRACKET = 91;

const TEMPLATE_FIELDS: TemplateFields = {
  responseText: new Set([
    "content",
    "reasoning_content",
    "reasoning",
    "refusal",
    "arguments",
    "input",
  ]),
  otherText: new Set(["obfuscation", "text"]),
  numbers: new Set(),
};

export const createPassthrough = (
  sink: PassthroughSink,
  to: ResponseContext,
  dialect: ChatDialect,
): PassthroughStream =>
  to.stream
    ? new StreamPassthrough(sink, to, dialect)
    : createResponsePassthrough(sink, to, dialect);

class StreamPassthrough implements PassthroughStream {
  readonly #sink: PassthroughSink;
  readonly #templates = new EventTemplates(TEMPLATE_FIELDS);
  readonly #renamed: ModelRenamer;
  readonly #events: EventSplitter;
  readonly #out: WriteBatch;
  #over = false;
  #begun = false;
  /** Bytes of text since the last report. */
  #words = 0;
  #nonStream: Buffer[] | undefined;
  readonly #to: ResponseContext;
  readonly #dialect: ChatDialect;
  readonly #clientWantsUsage: boolean;
  /** Fields that every chunk of this response has, for a chunk that the gateway adds. */
  #frame: JsonObject;
  #started = false;
  /** Whether the client has received usage in the place where it expects it. */
  #usageSent = false;
  #committed = false;
  #calls = false;
  #reason: FinishReason | undefined;
  #tier: string | undefined;
  /** Corrected usage for the current event, if its counts need correction. */
  #correctedUsage: JsonObject | undefined;

  constructor(sink: PassthroughSink, to: ResponseContext, dialect: ChatDialect) {
    this.#sink = sink;
    this.#to = to;
    this.#dialect = dialect;
    this.#renamed = new ModelRenamer(to.model);
    this.#out = createWriteBatch((b) => sink.write(b));
    this.#events = createEventSplitter((b, from, till) => this.#event(b, from, till));
    this.#clientWantsUsage = asObject(to.body["stream_options"])?.["include_usage"] === true;
    this.#frame = { id: `chatcmpl-${to.id}`, object: CHUNK, created: to.created };
  }

  get isBetweenEvents(): boolean {
    return this.#events.isBetweenEvents && !this.#over;
  }

  push(chunk: Buffer): void {
    if (!this.#begun && !this.#begins(chunk)) return;
    if (this.#nonStream) return void this.#nonStream.push(chunk);
    try {
      const from = this.#events.isAtEventStart ? this.#passKnown(chunk, 0) : 0;
      if (from < chunk.length) this.#events.push(from === 0 ? chunk : chunk.subarray(from));
    } finally {
      this.#out.flush();
      this.#reportText();
      this.#templates.endChunk();
    }
  }

  end(): void {
    if (this.#nonStream)
      return responseAsStream(Buffer.concat(this.#nonStream), this.#sink, this.#to, this.#dialect);
    this.#events.end();
    if (!this.#over) this.#finish();
  }

  writeFault(fault: Fault): void {
    this.#over = true;
    this.#sink.write(Buffer.from(faultChunk(fault)));
  }

  /**
   * Returns whether the response has begun. Detects whether it is a stream, JSON, or an HTML page.
   */
  #begins(chunk: Buffer): boolean {
    const first = firstByte(chunk);
    if (first === undefined) return false;
    this.#begun = true;
    if (first === BRACE || first === BRACKET) this.#nonStream = [];
    if (first === 60)
      fail("upstream", "The provider returned a web page instead of a stream.", {
        code: "malformed_answer",
      });
    return true;
  }

  /**
   * Forwards the known events from `from` on, and returns the offset after the last one. This is
   * nearly always the end of the chunk.
   */
  #passKnown(b: Buffer, from: number): number {
    if (this.#over || b.length > MAX_EVENT_BYTES) return from;
    const known = this.#templates;
    let end = from;
    while (end < b.length && known.find(b, end)) {
      // If lines end in CR, an event may end before its template does.
      if (end === from && known.hasCr(b)) return from;
      end = known.end;
      this.#renamed.add(known.nameFrom, known.nameTo);
      this.#words += known.textBytes;
    }
    if (end > from) this.#out.add(this.#renamed.of(b, from, end));
    return end;
  }

  #event(b: Buffer, from: number, till: number): void {
    // Data after the end is not part of the response.
    if (this.#over) return;
    const known = this.#templates;
    const end = this.#passKnown(b, from);
    // If `end` equals `till`, the event may have been joined from several chunks. The splitter
    // cannot continue inside such a buffer.
    if (end > till) this.#events.skipTo(end);
    if (end > from) return;
    if (known.find(b, from) && known.end === till) {
      this.#renamed.add(known.nameFrom, known.nameTo);
      this.#words += known.textBytes;
      return this.#out.add(this.#renamed.of(b, from, till));
    }
    let bytes = from === 0 && till === b.length ? b : b.subarray(from, till);
    const parsedEvent = parseEventText(bytes);
    if (!parsedEvent) return this.#out.add(bytes);
    if (parsedEvent.data === "[DONE]") return this.#finish();
    const chunk = parsed(parsedEvent.data);
    if (!this.#read(chunk, parsedEvent.event)) return;
    const json = findEventData(bytes)?.from;
    const better = this.#correctedUsage;
    // Data that spans several lines is joined and written in one line, as other providers do.
    if (json === undefined)
      return this.#out.add(
        Buffer.from(
          `data: ${JSON.stringify({ ...chunk, model: this.#to.model, ...(better && { usage: better }) })}\n\n`,
        ),
      );
    if (better) bytes = withUsage(bytes, json, better);
    const model = findValue(bytes, MODEL, json);
    if (!model) return this.#out.add(bytes);
    // Templates are learned only after the commit. Before it, every event must be inspected: an
    // event with empty text may have the same template as the event with the first content.
    if (this.#committed) known.learn(bytes, json, undefined, model);
    this.#renamed.add(model.from, model.to);
    this.#out.add(this.#renamed.of(bytes, 0, bytes.length));
  }

  /**
   * Reads the data that the gateway needs from a chunk. Returns false if the client did not request
   * this event.
   */
  #read(chunk: JsonObject, name: string): boolean {
    if (name === "error" || isErrorObject(chunk)) throwFault(chunk);
    const id = asText(chunk["id"]);
    if (!this.#started && id) {
      this.#started = true;
      this.#frame = { id, object: CHUNK, created: chunk["created"] ?? this.#to.created };
      this.#sink.reportStart(id);
    }
    if (this.#tier === undefined) {
      this.#tier = asText(chunk["service_tier"]);
      if (this.#tier !== undefined) this.#templates.forget();
    }
    const choices = asList(chunk["choices"]);
    for (const raw of choices) {
      const choice = asObject(raw);
      const delta = asObject(choice?.["delta"]);
      if (asList(delta?.["tool_calls"]).length > 0) this.#calls = true;
      if (!this.#committed && delta && hasContent(delta)) {
        this.#committed = true;
        this.#out.flush();
        this.#sink.reportContent(0);
      }
      if (delta) this.#words += textBytesIn(delta);
      const word = asText(choice?.["finish_reason"]);
      if (word) {
        this.#reason = parseFinishReason(word).reason;
        this.#templates.forget();
      }
    }
    const usage = usageSeen(chunk, this.#dialect);
    if (usage) {
      this.#sink.reportUsage(
        usage.tier === undefined && this.#tier !== undefined
          ? { ...usage, tier: this.#tier }
          : usage,
      );
      this.#templates.forget();
    }
    this.#correctedUsage = usage && correctedUsage(chunk, usage.usage);
    const counted = asObject(chunk["usage"]) !== undefined;
    this.#usageSent ||= counted && usage !== undefined;
    // Implausible counts are not forwarded. The settled counts are written at the end.
    return choices.length > 0 || !counted || (this.#clientWantsUsage && usage !== undefined);
  }

  #reportText(): void {
    if (this.#committed && this.#words > 0) this.#sink.reportContent(this.#words);
    this.#words = 0;
  }

  #finish(): void {
    if (this.#reason === undefined)
      fail("upstream", "The provider's response ended before it was complete.", {
        code: "truncated",
      });
    this.#over = true;
    this.#out.flush();
    this.#reportText();
    const settled = this.#sink.reportFinish(
      this.#calls && this.#reason === "stop" ? "tool_calls" : this.#reason!,
    );
    if (this.#clientWantsUsage && !this.#usageSent && settled)
      this.#sink.write(this.#counts(settled));
    this.#sink.write(DONE);
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

const CONTENT_FIELDS = [
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

/** Whether a delta contains something that a client would display or run. */
const hasContent = (delta: JsonObject): boolean =>
  CONTENT_FIELDS.some((key) => {
    const value = delta[key];
    return (
      value !== undefined &&
      value !== null &&
      value !== "" &&
      !(Array.isArray(value) && value.length === 0)
    );
  });
