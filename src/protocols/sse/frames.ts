import { fail } from "../../model/error.ts";
import { eventOf } from "./parse.ts";

const LF = 10;
const CR = 13;
const BLANK = Buffer.from("\n\n");

/** An event is small; what is larger is an attack or a mistake. */
export const EVENT_CAP = 4 * 1024 * 1024;

export interface Frames {
  push(chunk: Buffer): void;
  /** Hands over a last event whose blank line is missing, when it is plainly whole; forgets half an event. */
  end(): void;
  /** No event is half read. */
  readonly between: boolean;
}

/**
 * Splits a stream into whole events, blank line included. An event inside one chunk is a range of that chunk, never a
 * copy; one that is split over chunks is joined once. The ranges, one after the other, are the stream, less its byte
 * order mark. Comments and stray blank lines are ranges too: a relay passes them on.
 *
 * Lines end in LF, CRLF or CR. A CR that ends a chunk ends its line at once, so that no event waits for a LF that may
 * never come; if it does come, it is a blank line of its own.
 */
export function frames(
  on: (b: Buffer, from: number, to: number) => void,
  cap: number = EVENT_CAP,
): Frames {
  /** The pieces of an event that has not ended yet. */
  let held: Buffer[] = [];
  let size = 0;
  /** Nothing of the current line has been seen. */
  let lineStart = true;
  let afterCr = false;
  let first = true;

  const grow = (bytes: number) => {
    size += bytes;
    if (size > cap)
      fail("upstream", `One event of the upstream's stream is larger than ${cap} bytes.`, {
        code: "event_too_large",
      });
  };
  const give = (b: Buffer, from: number, to: number) => {
    grow(to - from);
    size = 0;
    if (held.length > 0) {
      held.push(b.subarray(from, to));
      b = Buffer.concat(held);
      held = [];
      from = 0;
      to = b.length;
    }
    if (first && startsWithBom(b, from)) from += 3;
    first = false;
    on(b, from, to);
  };

  return {
    get between() {
      return size === 0;
    },
    push(b) {
      const n = b.length;
      if (n === 0) return;
      let from = 0;
      let i = 0;
      if (afterCr && b[0] === LF) {
        i = 1;
        if (size === 0) give(b, 0, (from = 1));
      }
      afterCr = b[n - 1] === CR;
      // Most streams have no CR at all: one native search tells.
      let cr = b.indexOf(CR, i);
      while (i < n) {
        const lf = b.indexOf(LF, i);
        if (cr >= 0 && cr < i) cr = b.indexOf(CR, i);
        const end = cr >= 0 && (lf < 0 || cr < lf) ? cr : lf;
        if (end < 0) {
          lineStart = false;
          break;
        }
        const next = b[end] === CR && b[end + 1] === LF ? end + 2 : end + 1;
        const blank = end === i && lineStart;
        lineStart = true;
        i = next;
        if (blank) {
          give(b, from, next);
          from = next;
        }
      }
      if (from < n) {
        grow(n - from);
        held.push(from === 0 ? b : b.subarray(from));
      }
    },
    end() {
      if (size === 0) return;
      let rest = Buffer.concat(held);
      held = [];
      size = 0;
      if (first && startsWithBom(rest, 0)) rest = rest.subarray(3);
      const last = eventOf(rest);
      if (last && isWhole(last.data, lineStart))
        give(Buffer.concat([rest, BLANK]), 0, rest.length + BLANK.length);
    },
  };
}

const startsWithBom = (b: Buffer, i: number): boolean =>
  b[i] === 0xef && b[i + 1] === 0xbb && b[i + 2] === 0xbf;

/**
 * Upstreams do forget the last blank line, or the last newline; connections do break. A JSON text that parses is not
 * the beginning of another one, and neither is `[DONE]`; any other text is whole when its line was ended.
 */
function isWhole(data: string, lineEnded: boolean): boolean {
  if (data === "[DONE]") return true;
  if (!/^\s*[{[]/.test(data)) return lineEnded;
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}
