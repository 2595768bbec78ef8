import { BOUNDS } from "../../lib/bounds.ts";
import { BytePieces } from "../../lib/net/byte-pieces.ts";
import { unpooledSlice } from "../../lib/unpooled-buffer.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import { isUtf8 } from "node:buffer";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import { parseObject } from "../json-values.ts";

const LF = 10;

const CR = 13;

const BLANK = Buffer.from("\n\n");

/**
 * Maximum size of one event, in bytes. Events are small, so a larger event is an attack or a
 * mistake.
 */
export const MAX_EVENT_BYTES = BOUNDS.event.max;

export interface EventSplitter {
  push(chunk: Buffer): void;
  /**
   * Ends the stream. Emits a last event without its blank line if the event is evidently complete.
   * Discards an incomplete event.
   */
  end(): void;
  /** Whether no event is partly read. */
  readonly isBetweenEvents: boolean;
  /**
   * Whether the next byte begins an event, whatever that byte is. A codec that recognizes whole
   * events by their bytes can consume them before `push`.
   */
  readonly isAtEventStart: boolean;
  /**
   * Skips events up to `to`. Called while one event is handled, if the events after it were
   * recognized by their bytes and consumed with it.
   */
  skipTo(to: number): void;
}

type OnEventBytes = (b: Buffer, from: number, to: number) => void;

/**
 * Splits a stream into whole events, including the blank line. An event inside one chunk is a range
 * of that chunk and is not copied. An event that spans chunks is joined once. Concatenated, the
 * ranges are the stream without its byte order mark. Comments and stray blank lines are ranges too,
 * and passthrough mode forwards them.
 *
 * Lines end in LF, CRLF, or CR. A CR at the end of a chunk ends its line immediately, so no event
 * waits for an LF that may never come. If the LF follows, it is a separate blank line.
 */
export const createEventSplitter = (
  on: OnEventBytes,
  cap: number = MAX_EVENT_BYTES,
): EventSplitter => new ByteEventSplitter(on, cap);

/**
 * All state is in one object, because with 1,000 concurrent streams each stream's data has left the
 * CPU caches by its next chunk.
 */
class ByteEventSplitter implements EventSplitter {
  readonly #on: OnEventBytes;
  readonly #cap: number;
  /** Parts of an event that has not ended yet. */
  readonly #pieces = new BytePieces();
  #size = 0;
  /** Whether no byte of the current line has been seen. */
  #lineStart = true;
  #afterCr = false;
  #first = true;
  /** Offset at which the next event begins. */
  #next = 0;

  constructor(on: OnEventBytes, cap: number) {
    this.#on = on;
    this.#cap = cap;
  }

  get isBetweenEvents(): boolean {
    return this.#size === 0;
  }

  get isAtEventStart(): boolean {
    return this.#size === 0 && !this.#afterCr && !this.#first;
  }

  skipTo(to: number): void {
    this.#next = to;
  }

  // Bound to the instance, because codecs pass `push` and `end` on without the object.
  readonly push = (b: Buffer): void => {
    const n = b.length;
    if (n === 0) return;
    let from = 0;
    let i = 0;
    if (this.#afterCr && b[0] === LF) {
      i = 1;
      if (this.#size === 0) this.#emit(b, 0, (from = 1));
    }
    this.#afterCr = b[n - 1] === CR;
    // Most streams contain no CR. One native search checks this.
    let cr = b.indexOf(CR, i);
    let lf = b.indexOf(LF, i);
    while (i < n) {
      // Search again only after the last match was passed. A stream may contain only one of the two
      // characters.
      if (lf >= 0 && lf < i) lf = b.indexOf(LF, i);
      if (cr >= 0 && cr < i) cr = b.indexOf(CR, i);
      const end = cr >= 0 && (lf < 0 || cr < lf) ? cr : lf;
      if (end < 0) {
        this.#lineStart = false;
        break;
      }
      const next = b[end] === CR && b[end + 1] === LF ? end + 2 : end + 1;
      const blank = end === i && this.#lineStart;
      this.#lineStart = true;
      i = next;
      if (!blank) continue;
      this.#next = next;
      this.#emit(b, from, next);
      i = from = this.#next;
    }
    if (from < n) {
      this.#grow(n - from);
      this.#pieces.add(unpooledSlice(b, from));
    }
  };

  readonly end = (): void => {
    if (this.#size === 0) return;
    let rest = this.#pieces.take();
    this.#size = 0;
    if (this.#first && startsWithBom(rest, 0)) rest = rest.subarray(3);
    const last = parseEventText(rest);
    if (last && isCompleteEvent(last.data, this.#lineStart))
      this.#emit(Buffer.concat([rest, BLANK]), 0, rest.length + BLANK.length);
  };

  #grow(bytes: number): void {
    this.#size += bytes;
    if (this.#size > this.#cap) failBoundExceeded("event", this.#cap);
  }

  #emit(b: Buffer, from: number, to: number): void {
    this.#grow(to - from);
    this.#size = 0;
    if (this.#pieces.size > 0) {
      this.#pieces.add(b.subarray(from, to));
      b = this.#pieces.take();
      from = 0;
      to = b.length;
    }
    if (this.#first && startsWithBom(b, from)) from += 3;
    this.#first = false;
    this.#on(b, from, to);
  }
}

const startsWithBom = (b: Buffer, i: number): boolean =>
  b[i] === 0xef && b[i + 1] === 0xbb && b[i + 2] === 0xbf;

/**
 * Returns whether a last event without its blank line is complete. Providers sometimes omit the
 * last blank line or newline, and connections break.
 *
 * Valid JSON cannot be the beginning of a longer text, and neither can `[DONE]`. Any other text is
 * complete if its line has ended.
 */
function isCompleteEvent(data: string, lineEnded: boolean): boolean {
  if (data === "[DONE]") return true;
  if (!/^\s*[{[]/.test(data)) return lineEnded;
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}

export interface EventLimits {
  /** Maximum size of one line, in bytes. Default: 1 MiB. */
  maxLineBytes?: number;
  /** Maximum size of one event, in bytes. Default: 4 MiB. */
  maxEventBytes?: number;
}

/**
 * Decodes a stream of events into text. Each event has a name, "" if unset, and its joined data
 * lines. Lines end in LF, CRLF, or CR, even if a chunk boundary splits the line ending.
 *
 * Throws an upstream error if the UTF-8 is invalid or an event exceeds the limits.
 */
export function createEventDecoder(
  on: (event: string, data: string) => void,
  caps: EventLimits = {},
): Decoder {
  const line = caps.maxLineBytes ?? BOUNDS.line.max;
  return createEventSplitter(
    (b, from, to) => parseEvent(b, from, to, line, on),
    caps.maxEventBytes ?? Math.max(MAX_EVENT_BYTES, 2 * line),
  );
}

/**
 * Parses the bytes of one event, as `createEventSplitter` returns them. An event without data is
 * ignored, as the SSE standard requires. The `id` and `retry` fields only concern browsers and are
 * ignored.
 */
function parseEvent(
  b: Buffer,
  from: number,
  to: number,
  lineCap: number,
  on: (event: string, data: string) => void,
): void {
  let text = b.toString("utf8", from, to);
  // The replacement character appears if bytes were invalid, or if the provider sent that
  // character.
  if (text.includes("\ufffd") && !isUtf8(b.subarray(from, to)))
    fail("upstream", "The provider's stream is not valid UTF-8.", { code: "invalid_utf8" });
  if (text.includes("\r")) text = text.replace(/\r\n?/g, "\n");
  let event = "";
  let data: string | undefined;
  for (let i = 0; i < text.length;) {
    let end = text.indexOf("\n", i);
    if (end < 0) end = text.length;
    if (end - i > lineCap) failBoundExceeded("line", lineCap);
    if (text.startsWith("data", i)) {
      const value = fieldValue(text, i + 4, end);
      if (value !== undefined) data = data === undefined ? value : `${data}\n${value}`;
    } else if (text.startsWith("event", i)) {
      event = fieldValue(text, i + 5, end) ?? event;
    }
    i = end + 1;
  }
  if (data !== undefined && data !== "") on(event, data);
}

/**
 * Returns the value after a field's name: a colon, an optional space, and the value. A name alone
 * has an empty value. Returns undefined if the text continues the name, because that is another
 * field.
 */
function fieldValue(text: string, i: number, end: number): string | undefined {
  if (i === end) return "";
  if (text[i] !== ":") return undefined;
  return text.slice(text[i + 1] === " " ? i + 2 : i + 1, end);
}

/**
 * Parses the bytes of one event into text. Passthrough mode uses it for an event that it cannot
 * read in place.
 */
export function parseEventText(event: Buffer): { event: string; data: string } | undefined {
  let found: { event: string; data: string } | undefined;
  parseEvent(event, 0, event.length, Infinity, (name, data) => {
    found = { event: name, data };
  });
  return found;
}

/**
 * Parses the data of a provider's stream event, which is a JSON object in every protocol. Any other
 * value aborts the response.
 */
export const parseEventObject = (data: string): JsonObject =>
  parseObject(data) ??
  fail("upstream", "The provider's stream contains an event that is not a JSON object.", {
    code: "bad_stream",
  });
