import { BOUNDS } from "../../lib/bounds.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import { MAX_EVENT_BYTES, createEventSplitter } from "./event-splitter.ts";
import { parseEvent } from "./parse-event.ts";

export interface EventLimits {
  /** Bytes of one line; 1 MiB unless told. */
  maxLineBytes?: number;
  /** Bytes of one event; 4 MiB unless told. */
  maxEventBytes?: number;
}

/**
 * Events as text: the name ("" when the event has none) and its data lines joined. Lines end in LF, CRLF or CR, even
 * where a chunk splits them; UTF-8 that is wrong, or an event above the caps, is an upstream fault.
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
