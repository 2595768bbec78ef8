import type { Json, JsonObject, Opt } from "../../../plugin/index.ts";
import { asList, asObject } from "../../json-values.ts";

const CALLS = ["function", "custom", "function_call"];

/**
 * Returns the bytes of text in a delta or message. The usage of a truncated response is estimated
 * from it.
 */
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

/** Returns the bytes of a text, or of a list of parts, which may contain nested parts. */
function size(value: Opt<Json>): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  let bytes = 0;
  for (const raw of asList(value)) {
    const part = asObject(raw);
    bytes += size(part?.["text"]) + size(part?.["thinking"]);
  }
  return bytes;
}
