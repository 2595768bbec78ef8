import type { JsonObject } from "../../../model/values.ts";
import { asList, asObject, asObjects, asText } from "../../json-values.ts";

/** Bytes of text in all candidates of a chunk: what a cut answer is estimated from. */
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

/** Whether a chunk holds something that a client would show or run: thoughts too, and more than an empty text. */
export const hasContent = (chunk: JsonObject): boolean =>
  asObjects(chunk["candidates"]).some((candidate) =>
    asObjects(asObject(candidate["content"])?.["parts"]).some((part) =>
      Object.keys(part).some((key) => !NON_CONTENT_FIELDS.has(key) && part[key] !== ""),
    ),
  );

const NON_CONTENT_FIELDS: ReadonlySet<string> = new Set(["thought", "thoughtSignature"]);
