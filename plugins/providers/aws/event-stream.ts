// Reads application/vnd.amazon.eventstream: frames of [length][length of headers][checksum] headers
// payload [checksum], split at any byte. The cost is linear in the number of bytes for any chunk
// size, because each frame is assembled once. Frames longer than the limit are rejected.
import { crc32 } from "node:zlib";
import { fail } from "tollgate/plugin";

/** A message as received. */
export interface EventFrame {
  /** Text headers by name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Buffer;
}

/** Receives the bytes of a stream. */
export interface FrameReader {
  push(chunk: Buffer): void;
  /** Throws if the stream ends within a frame. */
  end(): void;
}

/** Maximum message size of the format, in bytes. Model events are far smaller. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
const MAX_HEADER_BYTES = 128 * 1024;
const PRELUDE = 12;
const MIN_FRAME_BYTES = PRELUDE + 4;

const failCorruptFrame = (what: string): never =>
  fail("upstream", `The provider's event stream is invalid: ${what}.`, { code: "bad_stream" });

/**
 * Creates a reader that calls `on` for each frame in order. Verifies both checksums of each frame.
 */
export function createFrameReader(on: (frame: EventFrame) => void): FrameReader {
  let held: Buffer[] = [];
  let size = 0;
  /** Length of the current frame, or 0 until its prelude is complete. */
  let length = 0;
  const take = (bytes: number): Buffer => {
    const all = held.length === 1 ? held[0]! : Buffer.concat(held, size);
    size -= bytes;
    held = size > 0 ? [all.subarray(bytes)] : [];
    return all.subarray(0, bytes);
  };
  /** Returns the start of the buffered bytes. Small chunks are joined at most once per frame. */
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
    failCorruptFrame("the prelude checksum does not match");
  if (length < MIN_FRAME_BYTES + headers || length > MAX_FRAME_BYTES || headers > MAX_HEADER_BYTES)
    failCorruptFrame("an event has an invalid length");
  return length;
}

function frameOf(frame: Buffer): EventFrame {
  const end = frame.length - 4;
  if (crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end))
    failCorruptFrame("an event checksum does not match");
  const from = PRELUDE + frame.readUInt32BE(4);
  return { headers: headersIn(frame.subarray(PRELUDE, from)), payload: frame.subarray(from, end) };
}

/** Length of a header value by its type. The two undefined types contain their own length. */
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
    if (type >= WIDTHS.length) failCorruptFrame("a header has an unknown type");
    const width = WIDTHS[type] ?? bytes.readUInt16BE(next(2));
    const from = next(width);
    if (type === TEXT) headers.set(name, bytes.toString("utf8", from, at));
  }
  return headers;
}
