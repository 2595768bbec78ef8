import type { JsonObject } from "../../../model/values.ts";
import { asList, asObject, asObjects, asText } from "../../json-values.ts";

/**
 * Returns the bytes of text in all candidates of a chunk. The usage of a truncated response is
 * estimated from it.
 */
export function textBytesIn(chunk: JsonObject): number {
  let bytes = 0;
  for (const candidate of asObjects(chunk["candidates"]))
    for (const part of asList(asObject(candidate["content"])?.["parts"]))
      bytes += size(asObject(part));
  return bytes;
}

function size(part: JsonObject | undefined): number {
  const partText = asText(part?.["text"]);
  if (partText !== undefined) return Buffer.byteLength(partText);
  const call = asObject(part?.["functionCall"]);
  return call ? Buffer.byteLength(JSON.stringify(call["args"] ?? {})) : 0;
}

/**
 * Whether a chunk contains something that a client would display or run. Thoughts count. Empty
 * texts do not.
 */
export const hasContent = (chunk: JsonObject): boolean =>
  asObjects(chunk["candidates"]).some((candidate) =>
    asObjects(asObject(candidate["content"])?.["parts"]).some((part) =>
      Object.keys(part).some((key) => !NON_CONTENT_FIELDS.has(key) && part[key] !== ""),
    ),
  );

const NON_CONTENT_FIELDS: ReadonlySet<string> = new Set(["thought", "thoughtSignature"]);
