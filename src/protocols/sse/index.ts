// Server-sent events, for codecs. `createEventDecoder` returns events as text, for translated mode.
// `createEventSplitter` returns them as byte ranges, for passthrough mode. `createLineDecoder`
// reads streams of JSON lines. The byte functions inspect JSON without parsing it. Pure: no I/O and
// no clock. May import: lib, model, plugin (types).
export {
  createEventDecoder,
  type EventLimits,
  MAX_EVENT_BYTES,
  createEventSplitter,
  type EventSplitter,
} from "./event-splitter.ts";
export { EventPassthrough, TemplatePassthrough } from "./event-passthrough.ts";
export { createLineDecoder } from "./line-decoder.ts";
export { parseEventText } from "./event-splitter.ts";
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
