// application/vnd.amazon.eventstream: frames of [length][length of headers][checksum] headers payload [checksum], cut in any
// way. Linear in the bytes, whatever the pieces are: a frame is put together once. No frame is held that is longer than the bound.
import { crc32 } from "node:zlib";
import { fail } from "tollgate/plugin";

/** One message, as it came. */
export interface EventFrame {
  /** Its headers that are text, by name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Buffer;
}

/** Takes the bytes of a stream. */
export interface FrameReader {
  push(chunk: Buffer): void;
  /** Throws where half a frame is left. */
  end(): void;
}

/** The format's own bound on a message; no event of a model comes near it. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
const MAX_HEADER_BYTES = 128 * 1024;
const PRELUDE = 12;
const MIN_FRAME_BYTES = PRELUDE + 4;

const failCorruptFrame = (what: string): never =>
  fail("upstream", `The provider's event stream is broken: ${what}.`, { code: "bad_stream" });

/** Calls `on` for each frame, in order. Both checksums of each are checked. */
export function createFrameReader(on: (frame: EventFrame) => void): FrameReader {
  let held: Buffer[] = [];
  let size = 0;
  /** Of the frame that has begun; 0 until its prelude is whole. */
  let length = 0;
  const take = (bytes: number): Buffer => {
    const all = held.length === 1 ? held[0]! : Buffer.concat(held, size);
    size -= bytes;
    held = size > 0 ? [all.subarray(bytes)] : [];
    return all.subarray(0, bytes);
  };
  /** Many small pieces are put together here at most once for each frame. */
  const peek = (): Buffer => {
    if (held[0]!.length < PRELUDE) held = [Buffer.concat(held, size)];
    return held[0]!;
  };
  return {
    push(chunk) {
      if (chunk.length === 0) return;
      held.push(chunk);
      size += chunk.length;
      for (;;) {
        if (length === 0) {
          if (size < PRELUDE) return;
          length = lengthOf(peek());
        }
        if (size < length) return;
        const frame = take(length);
        length = 0;
        on(frameOf(frame));
      }
    },
    end() {
      if (size > 0)
        fail("upstream", "The provider's stream ended in the middle of an event.", {
          code: "truncated",
        });
    },
  };
}

function lengthOf(prelude: Buffer): number {
  const length = prelude.readUInt32BE(0);
  const headers = prelude.readUInt32BE(4);
  if (crc32(prelude.subarray(0, 8)) !== prelude.readUInt32BE(8))
    failCorruptFrame("the checksum of a head does not fit");
  if (length < MIN_FRAME_BYTES + headers || length > MAX_FRAME_BYTES || headers > MAX_HEADER_BYTES)
    failCorruptFrame("an event has no possible length");
  return length;
}

function frameOf(frame: Buffer): EventFrame {
  const end = frame.length - 4;
  if (crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end))
    failCorruptFrame("the checksum of an event does not fit");
  const from = PRELUDE + frame.readUInt32BE(4);
  return { headers: headersIn(frame.subarray(PRELUDE, from)), payload: frame.subarray(from, end) };
}

/** How long a value is, by its type; those of two kinds say it themselves. */
const WIDTHS: readonly (number | undefined)[] = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16];
const TEXT = 7;

function headersIn(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  const next = (count: number): number => {
    const from = at;
    at += count;
    if (at > bytes.length) failCorruptFrame("a header is longer than its event");
    return from;
  };
  while (at < bytes.length) {
    const named = bytes[next(1)]!;
    const name = bytes.toString("utf8", next(named), at);
    const type = bytes[next(1)]!;
    if (type >= WIDTHS.length) failCorruptFrame("a header is of no known type");
    const width = WIDTHS[type] ?? bytes.readUInt16BE(next(2));
    const from = next(width);
    if (type === TEXT) headers.set(name, bytes.toString("utf8", from, at));
  }
  return headers;
}
