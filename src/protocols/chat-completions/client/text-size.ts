import type { Json, JsonObject, Opt } from "../../../plugin/index.ts";
import { asList, asObject } from "../../json-values.ts";

const CALLS = ["function", "custom", "function_call"];

/** Bytes of text in a delta, or in a whole message: what a cut answer is estimated from. */
export function textBytesIn(delta: JsonObject): number {
  let bytes = size(delta["content"]) + size(delta["refusal"]);
  bytes += size(delta["reasoning"]) || size(delta["reasoning_content"]);
  for (const raw of [delta, ...asList(delta["tool_calls"])])
    for (const kind of CALLS) {
      const call = asObject(asObject(raw)?.[kind]);
      bytes += size(call?.["arguments"]) + size(call?.["input"]);
    }
  return bytes;
}

/** Of a text, or of a list of parts that may have parts of their own. */
function size(value: Opt<Json>): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  let bytes = 0;
  for (const raw of asList(value)) {
    const part = asObject(raw);
    bytes += size(part?.["text"]) + size(part?.["thinking"]);
  }
  return bytes;
}
