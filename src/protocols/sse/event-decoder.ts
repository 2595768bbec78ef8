import { BOUNDS } from "../../lib/bounds.ts";
import type { Decoder } from "../../plugin/protocol.ts";
import { MAX_EVENT_BYTES, createEventSplitter } from "./event-splitter.ts";
import { parseEvent } from "./parse-event.ts";

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
