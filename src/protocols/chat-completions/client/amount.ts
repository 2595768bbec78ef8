import type { Json, JsonObject, Opt } from "../../../plugin/index.ts";
import { list, object } from "../../json.ts";

const CALLS = ["function", "custom", "function_call"];

/** Bytes of text in a delta, or in a whole message: what a cut answer is estimated from. */
export function wordsIn(delta: JsonObject): number {
  let bytes = size(delta["content"]) + size(delta["refusal"]);
  bytes += size(delta["reasoning"]) || size(delta["reasoning_content"]);
  for (const raw of [delta, ...list(delta["tool_calls"])])
    for (const kind of CALLS) {
      const told = object(object(raw)?.[kind]);
      bytes += size(told?.["arguments"]) + size(told?.["input"]);
    }
  return bytes;
}

/** Of a text, or of a list of parts that may have parts of their own. */
function size(value: Opt<Json>): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  let bytes = 0;
  for (const raw of list(value)) {
    const part = object(raw);
    bytes += size(part?.["text"]) + size(part?.["thinking"]);
  }
  return bytes;
}
