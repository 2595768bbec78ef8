import { BOUNDS } from "../../lib/bounds.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import { EVENT_CAP, frames } from "./frames.ts";
import { parseEvent } from "./parse.ts";

export interface Caps {
  /** Bytes of one line; 1 MiB unless told. */
  line?: number;
  /** Bytes of one event; 4 MiB unless told. */
  event?: number;
}

/**
 * Events as text: the name ("" when the event has none) and its data lines joined. Lines end in LF, CRLF or CR, even
 * where a chunk splits them; UTF-8 that is wrong, or an event above the caps, is an upstream fault.
 */
export function sse(on: (event: string, data: string) => void, caps: Caps = {}): Decoder {
  const line = caps.line ?? BOUNDS.line.most;
  return frames(
    (b, from, to) => parseEvent(b, from, to, line, on),
    caps.event ?? Math.max(EVENT_CAP, 2 * line),
  );
}
