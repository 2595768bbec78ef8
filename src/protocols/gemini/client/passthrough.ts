// Forwards a stream in passthrough mode. Chunks are unchanged, except for the model name. Data
// between chunks that clients of this protocol cannot read is dropped: event names, comments, blank
// lines, and a final `[DONE]`.
import { BOUNDS } from "../../../lib/bounds.ts";
import type { Fault } from "../../../model/error.ts";
import type { Usage } from "../../../model/usage.ts";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import {
  findEventData,
  parseEventText,
  createWriteBatch,
  createStringReplacer,
  EventPassthrough,
  encodeKey,
  findValue,
  replaceModelName,
} from "../../sse/index.ts";
import { parseExactJson } from "../../tool-calls.ts";
import { isJsonListStream } from "../constants.ts";
import { NEXT, ChunkWriter } from "../server/chunk-writer.ts";
import { countsTo } from "../server/content.ts";
import { faultBody } from "../server/fault.ts";
import { parseStreamJson, parsed } from "./response.ts";
import { UsageTap, tierOf } from "./usage-tap.ts";
import { createResponseCollector } from "../../../model/response-collector.ts";
import { asList } from "../../json-values.ts";
import { writeJson, createResponsePassthrough } from "../../passthrough.ts";
import { encodeResponse } from "../server/response.ts";
import { GeminiReader } from "./reader.ts";

export const createPassthrough = (
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream =>
  to.stream ? new GeminiStreamPassthrough(sink, to, headers) : passResponse(sink, to, headers);

const HEAD = Buffer.from("data: ");
const DATA = Buffer.from("data:");
const FEED = Buffer.from("\n\n");

class GeminiStreamPassthrough extends EventPassthrough {
  readonly #to: ResponseContext;
  readonly #headers: HeadersIn;
  readonly #tap: UsageTap;
  readonly #rename: ReturnType<typeof createStringReplacer>;
  readonly #listed: boolean;
  /**
   * The chunk with the finish reason, and all later chunks. They are held back, because this
   * protocol has no terminal event except the end of the stream.
   */
  readonly #finalChunks: { chunk: JsonObject; json: Buffer }[] = [];
  #begun = false;

  constructor(sink: PassthroughSink, to: ResponseContext, headers: HeadersIn) {
    super(sink, BOUNDS.imageEvent.max);
    this.#to = to;
    this.#headers = headers;
    this.#tap = new UsageTap(sink, to, tierOf(headers));
    this.#rename = createStringReplacer(["modelVersion"], to.model);
    this.#listed = isJsonListStream(to.body);
  }

  protected override convertResponse(body: Buffer): void {
    responseAsStream(body, this.sink, this.#to, this.#headers);
  }

  protected override afterChunk(): void {
    this.#tap.reportText();
  }

  protected onEnd(): void {
    this.out.flush();
    const settled = this.#tap.finish();
    const last = this.#finalChunks.pop();
    for (const { json } of this.#finalChunks) this.out.add(this.#framed(json));
    // The client receives the counts that the ledger prices. If the provider reported none, these
    // are the gateway's own counts.
    if (settled) this.out.add(this.#framed(this.#counted(last?.chunk, settled)));
    else if (last) this.out.add(this.#framed(last.json));
    if (this.#listed) this.out.add(Buffer.from("]"));
  }

  writeFault(f: Fault): void {
    this.sink.write(this.#framed(Buffer.from(JSON.stringify(faultBody(f)))));
    if (this.#listed) this.sink.write(Buffer.from("]"));
  }

  protected onEvent(b: Buffer, start: number, end: number): void {
    const bytes = b.subarray(start, end);
    const event = parseEventText(bytes);
    if (!event) return this.#textBetweenEvents(bytes);
    if (event.data === "" || event.data === "[DONE]") return;
    this.#chunk(parseStreamJson(event.data), bytes);
  }

  #chunk(raw: Json, event: Buffer): void {
    const chunk = this.#tap.chunk(raw);
    const json = this.#jsonOf(chunk, event);
    // Content is reported before its bytes are sent, because after that no other candidate can be
    // used.
    if (this.#tap.isFirstContent(chunk)) this.sink.reportContent(0);
    if (this.#tap.isEnded) this.#finalChunks.push({ chunk, json });
    else this.out.add(this.#framed(json));
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

// Forwards a non-streaming response in passthrough mode.

const MODEL = encodeKey("modelVersion");

function passResponse(
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): PassthroughStream {
  const forward = (body: Buffer): void => {
    const json = parsed(body);
    if (Array.isArray(json)) return mergeChunks(asList(json), sink, to, headers);
    const tap = new UsageTap(sink, to, tierOf(headers));
    const answer = tap.chunk(json);
    if (tap.isFirstContent(answer)) sink.reportContent(0);
    tap.reportText();
    const settled = tap.finish();
    const at = findValue(body, [MODEL], body.indexOf(123));
    const name = at && body.toString("utf8", at.from, at.to);
    const reportedModel = answer["modelVersion"];
    // If the model name is present twice with different values, this parser uses the last one, and
    // others may use the first. The response is then re-encoded.
    if (settled || (reportedModel !== undefined && name !== JSON.stringify(reportedModel)))
      return writeJson(sink, {
        ...answer,
        ...(reportedModel !== undefined && { modelVersion: to.model }),
        ...(settled && { usageMetadata: countsTo(settled) }),
      });
    replaceModelName(body, to.model, (b) => sink.write(b), MODEL);
  };
  return createResponsePassthrough(sink, forward, faultBody);
}

/** Merges the chunks of a server that streams although no stream was requested. */
function mergeChunks(
  pieces: readonly Json[],
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): void {
  const { event, answer } = createResponseCollector();
  let counted = false;
  const reading = new GeminiReader(
    (e) => {
      if (e.type === "start") sink.reportStart(e.id ?? "");
      if (e.type === "delta") sink.reportContent(Buffer.byteLength(e.text));
      if (e.type === "usage") {
        counted = true;
        sink.reportUsage(e);
      }
      event(e);
    },
    { model: to.model, info: to.info ?? { model: to.model, operation: "chat" } },
    { isImageRequest: false, tier: tierOf(headers) },
  );
  for (const piece of pieces) reading.chunk(piece);
  reading.end();
  const response = answer();
  const settled = sink.reportFinish(response.finish.reason);
  const usage = counted ? response.usage : (settled ?? response.usage);
  sink.write(Buffer.from(JSON.stringify(encodeResponse({ ...response, usage }, to))));
}

/**
 * Converts a non-streaming response into a stream. A stream was requested, but the provider sent
 * one response or a JSON list of chunks.
 */
function responseAsStream(
  body: Buffer,
  sink: PassthroughSink,
  to: ResponseContext,
  headers: HeadersIn,
): void {
  const tap = new UsageTap(sink, to, tierOf(headers));
  const json = parsed(body);
  const chunks = (Array.isArray(json) ? asList(json) : [json]).map((one) => tap.chunk(one));
  const pieces: string[] = [];
  const page = new ChunkWriter((piece) => pieces.push(piece), to);
  for (const [i, chunk] of chunks.entries()) {
    const named: JsonObject =
      chunk["modelVersion"] === undefined ? chunk : { ...chunk, modelVersion: to.model };
    if (tap.isFirstContent(chunk)) sink.reportContent(0);
    if (i < chunks.length - 1) {
      page.chunk(named);
      continue;
    }
    sink.write(Buffer.from(pieces.splice(0).join("")));
    const settled = tap.finish();
    page.endWith(settled ? { ...named, usageMetadata: countsTo(settled) } : named);
  }
  sink.write(Buffer.from(pieces.join("")));
}
