// tollgate/protocols/sse: server-sent events, for codecs. `sse` gives events as text, for translated mode; `frames`
// gives them as ranges of the bytes that came, for relays; `lines` is for streams of JSON in lines; the byte tools let a relay look at JSON without parsing it.
// Pure: no I/O, no clock. May import: lib, model, plugin (types).
export { createEventDecoder, type EventLimits } from "./event-decoder.ts";
export { MAX_EVENT_BYTES, createEventSplitter, type EventSplitter } from "./event-splitter.ts";
export { EventPassthrough } from "./event-passthrough.ts";
export { createLineDecoder } from "./line-decoder.ts";
export { parseEventText } from "./parse-event.ts";
export {
  findEventData,
  endOfString,
  endOfValue,
  createWriteBatch,
  findKey,
  replaceModelName,
  encodeKey,
  createStringReplacer,
  findValue,
  type WriteBatch,
  type Range,
} from "./json-bytes.ts";
