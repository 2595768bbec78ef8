// tollgate/protocols/sse: server-sent events, for codecs. `sse` gives events as text, for the translated lane; `frames`
// gives them as ranges of the bytes that came, for relays; `lines` is for streams of JSON in lines; the byte tools let a relay look at JSON without parsing it.
// Pure: no I/O, no clock. May import: lib, model, plugin (types).
export { sse, type Caps } from "./events.ts";
export { EVENT_CAP, frames, type Frames } from "./frames.ts";
export { EventRelay } from "./relay.ts";
export { lines } from "./lines.ts";
export { eventOf } from "./parse.ts";
export {
  dataOf,
  endOfString,
  endOfValue,
  gather,
  keyAt,
  named,
  needle,
  renaming,
  valueAt,
  type Gather,
  type Range,
} from "./bytes.ts";
