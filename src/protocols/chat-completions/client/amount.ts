import type { JsonObject } from "../../../plugin/index.ts";
import { list, object } from "../words.ts";

const ARGUMENTS = ["function", "custom"];

/** Bytes of text in a delta, or in a whole message: what a cut answer is estimated from. */
export function wordsIn(delta: JsonObject): number {
  const size = (value: unknown) => (typeof value === "string" ? Buffer.byteLength(value) : 0);
  let bytes = size(delta["content"]) + size(delta["refusal"]);
  bytes += size(delta["reasoning"]) || size(delta["reasoning_content"]);
  if (Array.isArray(delta["content"]))
    for (const part of delta["content"]) bytes += size(object(part)?.["text"]);
  for (const raw of list(delta["tool_calls"])) {
    const call = object(raw);
    for (const kind of ARGUMENTS) {
      const told = object(call?.[kind]);
      bytes += size(told?.["name"]) + size(told?.["arguments"]) + size(told?.["input"]);
    }
  }
  return bytes;
}
