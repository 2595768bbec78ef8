// Forwards a stream in passthrough mode. Chunks are unchanged, except for the model name. Data
// between chunks that clients of this protocol cannot read is dropped: event names, comments, blank
// lines, and a final `[DONE]`.
import { BOUNDS } from "../../../lib/bounds.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type { Usage } from "../../../model/usage.ts";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { parseExactJson } from "../../tool-calls.ts";
import {
  findEventData,
  parseEventText,
  createEventSplitter,
  createWriteBatch,
  createStringReplacer,
  type EventSplitter,
  type WriteBatch,
} from "../../sse/index.ts";
import { NEXT } from "../server/chunk-writer.ts";
import { countsTo } from "../server/content.ts";
import { faultBody } from "../server/fault.ts";
import { isJsonListStream } from "../constants.ts";
import { createResponsePassthrough, responseAsStream } from "./passthrough-response.ts";
import { UsageTap, tierOf } from "./usage-tap.ts";

export const createPassthrough = (
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream =>
  to.stream
    ? new StreamPassthrough(sink, to, headers)
    : createResponsePassthrough(sink, to, headers);

const HEAD = Buffer.from("data: ");
const DATA = Buffer.from("data:");
const FEED = Buffer.from("\n\n");
const SPACE = 32;
const BRACE = 123;
const BRACKET = 91;

class StreamPassthrough implements PassthroughStream {
  readonly #sink: PassthroughSink;
  readonly #to: ResponseContext;
  readonly #headers: HeadersIn;
  readonly #out: WriteBatch;
  readonly #tap: UsageTap;
  readonly #rename: ReturnType<typeof createStringReplacer>;
  readonly #events: EventSplitter;
  readonly #listed: boolean;
  /**
   * Chunks from the one with the finish reason on. They are held back, because this protocol has no
   * terminal event except the end of the stream.
   */
  readonly #finalChunks: { chunk: JsonObject; json: Buffer }[] = [];
  #begun = false;
  #sniffed = false;
  /** Body of a response that is not a stream, although one was requested. */
  #nonStream: Buffer[] | undefined;

  constructor(sink: PassthroughSink, to: ResponseContext, headers: HeadersIn) {
    this.#sink = sink;
    this.#to = to;
    this.#headers = headers;
    this.#out = createWriteBatch((b) => sink.write(b));
    this.#tap = new UsageTap(sink, to, tierOf(headers));
    this.#rename = createStringReplacer(["modelVersion"], to.model);
    this.#events = createEventSplitter(this.#event, BOUNDS.imageEvent.max);
    this.#listed = isJsonListStream(to.body);
  }

  get isBetweenEvents(): boolean {
    return this.#events.isBetweenEvents;
  }

  push(chunk: Buffer): void {
    if (!this.#sniffed && !this.#sniff(chunk)) return;
    if (this.#nonStream) return void this.#nonStream.push(chunk);
    try {
      this.#events.push(chunk);
    } finally {
      this.#out.flush();
      this.#tap.reportText();
    }
  }

  end(): void {
    if (this.#nonStream)
      return responseAsStream(Buffer.concat(this.#nonStream), this.#sink, this.#to, this.#headers);
    this.#events.end();
    this.#out.flush();
    const settled = this.#tap.finish();
    const last = this.#finalChunks.pop();
    for (const { json } of this.#finalChunks) this.#out.add(this.#framed(json));
    // The client receives the counts that the ledger prices. If the provider reported none, these
    // are the gateway's own counts.
    if (settled) this.#out.add(this.#framed(this.#counted(last?.chunk, settled)));
    else if (last) this.#out.add(this.#framed(last.json));
    if (this.#listed) this.#out.add(Buffer.from("]"));
    this.#out.flush();
  }

  writeFault(f: Fault): void {
    this.#sink.write(this.#framed(Buffer.from(JSON.stringify(faultBody(f)))));
    if (this.#listed) this.#sink.write(Buffer.from("]"));
  }

  /** Returns whether the response has begun. Detects whether it is a stream or JSON. */
  #sniff(chunk: Buffer): boolean {
    const first = chunk.find((byte) => byte > SPACE);
    if (first === undefined) return false;
    this.#sniffed = true;
    if (first === BRACE || first === BRACKET) this.#nonStream = [];
    return true;
  }

  // A field, so that each event costs only one function call.
  readonly #event = (b: Buffer, start: number, end: number): void => {
    const bytes = b.subarray(start, end);
    const event = parseEventText(bytes);
    if (!event) return this.#textBetweenEvents(bytes);
    if (event.data === "" || event.data === "[DONE]") return;
    this.#chunk(jsonOf(event.data), bytes);
  };

  #chunk(raw: Json, event: Buffer): void {
    const chunk = this.#tap.chunk(raw);
    const json = this.#jsonOf(chunk, event);
    // Content is reported before its bytes are sent, because after that no other candidate can be
    // used.
    if (this.#tap.isFirstContent(chunk)) this.#sink.reportContent(0);
    if (this.#tap.isEnded) this.#finalChunks.push({ chunk, json });
    else this.#out.add(this.#framed(json));
  }

  /**
   * Returns the original bytes if the event is a single line of data. Otherwise, the chunk is
   * serialized again.
   */
  #jsonOf(chunk: JsonObject, event: Buffer): Buffer {
    const data = findEventData(event);
    if (!data || !event.subarray(0, 5).equals(DATA) || !isBlank(event, data.to))
      return Buffer.from(JSON.stringify({ ...chunk, ...this.#model(chunk) }));
    const parts: Buffer[] = [];
    const named = createWriteBatch((piece) => parts.push(piece));
    this.#rename(event.subarray(data.from, data.to), 0, named);
    named.flush();
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  #counted(last: JsonObject | undefined, settled: Usage): Buffer {
    const lastChunk = { ...last, modelVersion: this.#to.model, usageMetadata: countsTo(settled) };
    return Buffer.from(JSON.stringify(lastChunk));
  }

  #model(chunk: JsonObject): JsonObject {
    return chunk["modelVersion"] === undefined ? {} : { modelVersion: this.#to.model };
  }

  #framed(json: Buffer): Buffer {
    if (!this.#listed) return Buffer.concat([HEAD, json, FEED]);
    const before = this.#begun ? NEXT : "[";
    this.#begun = true;
    return Buffer.concat([Buffer.from(before), json]);
  }

  /** Handles text between events: a comment, or JSON that describes an error. */
  #textBetweenEvents(bytes: Buffer): void {
    const text = bytes.toString();
    const at = text.search(/^[ \t]*[[{]/m);
    if (at < 0) return;
    let json: Json;
    try {
      json = parseExactJson(text.slice(at).trim());
    } catch {
      return;
    }
    this.#chunk(json, bytes);
  }
}

function isBlank(b: Buffer, from: number): boolean {
  for (let i = from; i < b.length; i++) if (b[i] !== 10 && b[i] !== 13) return false;
  return true;
}

function jsonOf(data: string): Json {
  try {
    return parseExactJson(data);
  } catch {
    return fail("upstream", "The provider's stream contains an event that is not valid JSON.", {
      code: "bad_stream",
    });
  }
}
