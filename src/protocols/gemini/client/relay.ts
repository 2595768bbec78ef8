// The verbatim lane: chunks pass as they came, but for the model's name. What clients of this wire cannot read between chunks
// stays behind: names of events, comments, blank lines, a last `[DONE]`.
import { BOUNDS } from "../../../lib/bounds.ts";
import { fail, type Fault } from "../../../model/error.ts";
import type { Usage } from "../../../model/usage.ts";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { exactly } from "../../arguments.ts";
import {
  dataOf,
  eventOf,
  frames,
  gather,
  renaming,
  type Frames,
  type Gather,
} from "../../sse/index.ts";
import { NEXT } from "../server/chunk-writer.ts";
import { countsTo } from "../server/content.ts";
import { faultBody } from "../server/fault.ts";
import { isListed } from "../words.ts";
import { relayWhole, restream } from "./relay-whole.ts";
import { ChunkTap, tierOf } from "./tap.ts";

export const relay = (sink: RelaySink, to: AnswerContext, headers: HeadersIn): Relay =>
  to.stream ? new StreamRelay(sink, to, headers) : relayWhole(sink, to, headers);

const HEAD = Buffer.from("data: ");
const DATA = Buffer.from("data:");
const FEED = Buffer.from("\n\n");
const SPACE = 32;
const BRACE = 123;
const BRACKET = 91;

class StreamRelay implements Relay {
  readonly #sink: RelaySink;
  readonly #to: AnswerContext;
  readonly #headers: HeadersIn;
  readonly #out: Gather;
  readonly #tap: ChunkTap;
  readonly #rename: ReturnType<typeof renaming>;
  readonly #events: Frames;
  readonly #listed: boolean;
  /** From the chunk that names the end on: this wire has no terminal but the end of the bytes. */
  readonly #held: { chunk: JsonObject; json: Buffer }[] = [];
  #begun = false;
  #looked = false;
  /** No stream at all: what came where one was asked for. */
  #plain: Buffer[] | undefined;

  constructor(sink: RelaySink, to: AnswerContext, headers: HeadersIn) {
    this.#sink = sink;
    this.#to = to;
    this.#headers = headers;
    this.#out = gather((b) => sink.bytes(b));
    this.#tap = new ChunkTap(sink, to, tierOf(headers));
    this.#rename = renaming(["modelVersion"], to.model);
    this.#events = frames(this.#event, BOUNDS.pictureEvent.most);
    this.#listed = isListed(to.body);
  }

  get between(): boolean {
    return this.#events.between;
  }

  push(chunk: Buffer): void {
    if (!this.#looked && !this.#look(chunk)) return;
    if (this.#plain) return void this.#plain.push(chunk);
    try {
      this.#events.push(chunk);
    } finally {
      this.#out.flush();
      this.#tap.told();
    }
  }

  end(): void {
    if (this.#plain)
      return restream(Buffer.concat(this.#plain), this.#sink, this.#to, this.#headers);
    this.#events.end();
    this.#out.flush();
    const settled = this.#tap.finish();
    const last = this.#held.pop();
    for (const { json } of this.#held) this.#out.add(this.#framed(json));
    // What the ledger prices is what the client reads: where upstream counted nothing, our own count.
    if (settled) this.#out.add(this.#framed(this.#counted(last?.chunk, settled)));
    else if (last) this.#out.add(this.#framed(last.json));
    if (this.#listed) this.#out.add(Buffer.from("]"));
    this.#out.flush();
  }

  fail(f: Fault): void {
    this.#sink.bytes(this.#framed(Buffer.from(JSON.stringify(faultBody(f)))));
    if (this.#listed) this.#sink.bytes(Buffer.from("]"));
  }

  /** Whether there is anything yet. */
  #look(chunk: Buffer): boolean {
    const first = chunk.find((byte) => byte > SPACE);
    if (first === undefined) return false;
    this.#looked = true;
    if (first === BRACE || first === BRACKET) this.#plain = [];
    return true;
  }

  // A field, so that an event costs one call.
  readonly #event = (b: Buffer, start: number, end: number): void => {
    const bytes = b.subarray(start, end);
    const event = eventOf(bytes);
    if (!event) return this.#stray(bytes);
    if (event.data === "" || event.data === "[DONE]") return;
    this.#chunk(jsonOf(event.data), bytes);
  };

  #chunk(raw: Json, event: Buffer): void {
    const chunk = this.#tap.chunk(raw);
    const json = this.#jsonOf(chunk, event);
    // Said before its bytes leave: they wait for no other candidate.
    if (this.#tap.begins(chunk)) this.#sink.content(0);
    if (this.#tap.ended) this.#held.push({ chunk, json });
    else this.#out.add(this.#framed(json));
  }

  /** The bytes as they came, where they are one line of data and nothing else. */
  #jsonOf(chunk: JsonObject, event: Buffer): Buffer {
    const data = dataOf(event);
    if (!data || !event.subarray(0, 5).equals(DATA) || !isBlank(event, data.to))
      return Buffer.from(JSON.stringify({ ...chunk, ...this.#model(chunk) }));
    const parts: Buffer[] = [];
    const named = gather((piece) => parts.push(piece));
    this.#rename(event.subarray(data.from, data.to), 0, named);
    named.flush();
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  #counted(last: JsonObject | undefined, settled: Usage): Buffer {
    const said = { ...last, modelVersion: this.#to.model, usageMetadata: countsTo(settled) };
    return Buffer.from(JSON.stringify(said));
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

  /** Text between events: a comment, or JSON that says what went wrong. */
  #stray(bytes: Buffer): void {
    const text = bytes.toString();
    const at = text.search(/^[ \t]*[[{]/m);
    if (at < 0) return;
    let json: Json;
    try {
      json = exactly(text.slice(at).trim());
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
    return exactly(data);
  } catch {
    return fail("upstream", "An event of the provider's stream is not JSON.", {
      code: "bad_stream",
    });
  }
}
