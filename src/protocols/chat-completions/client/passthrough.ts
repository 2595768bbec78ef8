// Forwards a provider's stream in passthrough mode. Bytes are forwarded unchanged, except for the
// model name, and the gateway reads the data it needs along the way. An event that differs only in
// its text from an event read before is not parsed (see `EventTemplates`).
import { unpooledFromText } from "../../../lib/unpooled-buffer.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type {
  ResponseContext,
  FinishReason,
  JsonObject,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/index.ts";
import { withCost } from "../../cost-in-usage.ts";
import { failTruncated } from "../../failure/parse-error.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { EventTemplates, type TemplateFields } from "../../sse/event-templates.ts";
import {
  findEventData,
  parseEventText,
  encodeKey,
  findValue,
  TemplatePassthrough,
} from "../../sse/index.ts";
import { parseFinishReason } from "../constants.ts";
import type { ChatDialect } from "../dialect.ts";
import { faultChunk } from "../server/response-common.ts";
import { usageSeen, usageTo } from "../usage.ts";
import { isErrorObject, parsed, throwFault } from "./response.ts";
import {
  textBytesIn,
  withUsage,
  correctedUsage,
  passResponse,
  responseAsStream,
} from "./passthrough-response.ts";

const MODEL = [encodeKey("model")];
const DONE = Buffer.from("data: [DONE]\n\n");

const CHUNK = "chat.completion.chunk";

const LESS_THAN = 60;

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
  to.stream ? new ChunkPassthrough(sink, to, dialect) : passResponse(sink, to, dialect);

class ChunkPassthrough extends TemplatePassthrough {
  readonly #renamed: ModelRenamer;
  /** Bytes of text since the last report. */
  #words = 0;
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
  /** Usage that waits for the cost, because the client asked for it. */
  #heldUsage: JsonObject | undefined;
  /** Corrected usage for the current event, if its counts need correction. */
  #correctedUsage: JsonObject | undefined;

  constructor(sink: PassthroughSink, to: ResponseContext, dialect: ChatDialect) {
    super(sink, TEMPLATE_FIELDS);
    this.#to = to;
    this.#dialect = dialect;
    this.#renamed = new ModelRenamer(to.model);
    this.#clientWantsUsage = asObject(to.body["stream_options"])?.["include_usage"] === true;
    this.#frame = { id: `chatcmpl-${to.id}`, object: CHUNK, created: to.created };
  }

  protected override convertResponse(body: Buffer): void {
    responseAsStream(body, this.sink, this.#to, this.#dialect);
  }

  protected override onStreamStart(first: number): void {
    if (first === LESS_THAN)
      fail("upstream", "The provider returned a web page instead of a stream.", {
        code: "malformed_answer",
      });
  }

  writeFault(fault: Fault): void {
    this.isOver = true;
    this.sink.write(Buffer.from(faultChunk(fault)));
  }

  protected override afterChunk(): void {
    this.#reportText();
    super.afterChunk();
  }

  protected onKnownEvent(known: EventTemplates): void {
    this.#renamed.add(known.nameFrom, known.nameTo);
    this.#words += known.textBytes;
  }

  protected override forwardKnown(b: Buffer, from: number, to: number): void {
    this.out.add(this.#renamed.of(b, from, to));
  }

  protected onNewEvent(b: Buffer, from: number, till: number): void {
    const known = this.templates;
    // If lines may end in CR, an event is known only if it ends where its template does.
    if (known.find(b, from) && known.end === till) {
      this.onKnownEvent(known);
      return this.forwardKnown(b, from, till);
    }
    let bytes = from === 0 && till === b.length ? b : b.subarray(from, till);
    const parsedEvent = parseEventText(bytes);
    if (!parsedEvent) return this.out.add(bytes);
    if (parsedEvent.data === "[DONE]") return this.onEnd();
    const chunk = parsed(parsedEvent.data);
    if (!this.#read(chunk, parsedEvent.event)) return;
    const json = findEventData(bytes)?.from;
    const better = this.#correctedUsage;
    // Data that spans several lines is joined and written in one line, as other providers do.
    if (json === undefined)
      return this.out.add(
        Buffer.from(
          `data: ${JSON.stringify({ ...chunk, model: this.#to.model, ...(better && { usage: better }) })}\n\n`,
        ),
      );
    if (better) bytes = withUsage(bytes, json, better);
    const model = findValue(bytes, MODEL, json);
    if (!model) return this.out.add(bytes);
    // Templates are stored only after the commit. Until then every event must be inspected,
    // because an event with empty text may have the same template as the event with the first
    // token.
    if (this.#committed) known.learn(bytes, json, undefined, model);
    this.#renamed.add(model.from, model.to);
    this.forwardKnown(bytes, 0, bytes.length);
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
      this.sink.reportStart(id);
    }
    if (this.#tier === undefined) {
      this.#tier = asText(chunk["service_tier"]);
      if (this.#tier !== undefined) this.templates.forget();
    }
    const choices = asList(chunk["choices"]);
    for (const raw of choices) {
      const choice = asObject(raw);
      const delta = asObject(choice?.["delta"]);
      if (asList(delta?.["tool_calls"]).length > 0) this.#calls = true;
      if (!this.#committed && delta && hasContent(delta)) {
        this.#committed = true;
        this.out.flush();
        this.sink.reportContent(0);
      }
      if (delta) this.#words += textBytesIn(delta);
      const word = asText(choice?.["finish_reason"]);
      if (word) {
        this.#reason = parseFinishReason(word).reason;
        this.templates.forget();
      }
    }
    const usage = usageSeen(chunk, this.#dialect);
    if (usage) {
      this.sink.reportUsage(
        usage.tier === undefined && this.#tier !== undefined
          ? { ...usage, tier: this.#tier }
          : usage,
      );
      this.templates.forget();
    }
    this.#correctedUsage = usage && correctedUsage(chunk, usage.usage);
    const reported = asObject(chunk["usage"]);
    const counted = reported !== undefined;
    if (this.#to.includesCost === true && choices.length === 0 && reported && usage) {
      this.#heldUsage = this.#correctedUsage ?? reported;
      return false;
    }
    this.#usageSent ||= counted && usage !== undefined;
    // Implausible counts are not forwarded. The settled counts are written at the end.
    return choices.length > 0 || !counted || (this.#clientWantsUsage && usage !== undefined);
  }

  #reportText(): void {
    if (this.#committed && this.#words > 0) this.sink.reportContent(this.#words);
    this.#words = 0;
  }

  protected onEnd(): void {
    if (this.#reason === undefined) failTruncated();
    this.isOver = true;
    this.out.flush();
    this.#reportText();
    const settled = this.sink.reportFinish(
      this.#calls && this.#reason === "stop" ? "tool_calls" : this.#reason!,
    );
    const usage = this.#heldUsage ?? (settled && usageTo(settled));
    if (this.#clientWantsUsage && usage && (!this.#usageSent || this.#to.includesCost === true))
      this.sink.write(this.#counts(usage));
    this.sink.write(DONE);
  }

  #counts(usage: JsonObject): Buffer {
    const chunk = {
      ...this.#frame,
      model: this.#to.model,
      choices: [],
      usage: withCost(usage, this.#to),
    };
    return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
  }
}

/** Replaces the model name in outgoing bytes whose events are all known. */
class ModelRenamer {
  readonly #name: Buffer;
  /** Start and end offsets of the names, alternating. */
  #at: number[] = [];
  #shorter = 0;

  constructor(model: string) {
    this.#name = unpooledFromText(JSON.stringify(model));
  }

  /** Adds the position of the next name. */
  add(from: number, to: number): void {
    this.#at.push(from, to);
    this.#shorter += to - from;
  }

  /** Returns the bytes in [from, to) with all names replaced, in one buffer. */
  of(b: Buffer, from: number, to: number): Buffer {
    const at = this.#at;
    const name = this.#name;
    const out = Buffer.allocUnsafe(to - from - this.#shorter + (at.length >> 1) * name.length);
    let end = 0;
    for (let i = 0; i < at.length; i += 2) {
      end += b.copy(out, end, from, at[i]);
      end += name.copy(out, end);
      from = at[i + 1]!;
    }
    b.copy(out, end, from, to);
    at.length = 0;
    this.#shorter = 0;
    return out;
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
