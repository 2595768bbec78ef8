import { BOUNDS } from "../../lib/bounds.ts";
import { unpooledSlice } from "../../lib/unpooled-buffer.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import { parseEventText } from "./parse-event.ts";

const LF = 10;
const CR = 13;
const BLANK = Buffer.from("\n\n");

/** An event is small; what is larger is an attack or a mistake. */
export const MAX_EVENT_BYTES = BOUNDS.event.max;

export interface EventSplitter {
  push(chunk: Buffer): void;
  /** Hands over a last event whose blank line is missing, when it is plainly whole; forgets half an event. */
  end(): void;
  /** No event is half read. */
  readonly isBetweenEvents: boolean;
  /** The next byte begins an event, whatever it is: a relay that knows whole events by their bytes may take them out before `push`. */
  readonly isAtEventStart: boolean;
  /** Said while one event is taken: those behind it were known by their bytes and taken with it, up to here. */
  skipTo(to: number): void;
}

type OnEventBytes = (b: Buffer, from: number, to: number) => void;

/**
 * Splits a stream into whole events, blank line included. An event inside one chunk is a range of that chunk, never a
 * copy; one that is split over chunks is joined once. The ranges, one after the other, are the stream, less its byte
 * order mark. Comments and stray blank lines are ranges too: a relay passes them on.
 *
 * Lines end in LF, CRLF or CR. A CR that ends a chunk ends its line at once, so that no event waits for a LF that may
 * never come; if it does come, it is a blank line of its own.
 */
export const createEventSplitter = (
  on: OnEventBytes,
  cap: number = MAX_EVENT_BYTES,
): EventSplitter => new ByteEventSplitter(on, cap);

/** One object, since a thousand streams in turn find nothing of theirs in the processor's caches. */
class ByteEventSplitter implements EventSplitter {
  readonly #on: OnEventBytes;
  readonly #cap: number;
  /** The pieces of an event that has not ended yet. */
  #pieces: Buffer[] = [];
  #size = 0;
  /** Nothing of the current line has been seen. */
  #lineStart = true;
  #afterCr = false;
  #first = true;
  /** Where the next event begins. */
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

  // Codecs hand `push` and `end` on as they are, without the object.
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
    // Most streams have no CR at all: one native search tells.
    let cr = b.indexOf(CR, i);
    let lf = b.indexOf(LF, i);
    while (i < n) {
      // Each is looked for again only when it has been passed: a stream may have but one of them.
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
      this.#pieces.push(unpooledSlice(b, from));
    }
  };

  readonly end = (): void => {
    if (this.#size === 0) return;
    let rest = Buffer.concat(this.#pieces);
    this.#pieces = [];
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
    if (this.#pieces.length > 0) {
      this.#pieces.push(b.subarray(from, to));
      b = Buffer.concat(this.#pieces);
      this.#pieces = [];
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
 * Upstreams do forget the last blank line, or the last newline; connections do break. A JSON text that parses is not
 * the beginning of another one, and neither is `[DONE]`; any other text is whole when its line was ended.
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
