import type { JsonObject } from "../../../model/values.ts";
import { list, object, objects, text } from "../../json.ts";

/** Bytes of text in all candidates of a chunk: what a cut answer is estimated from. */
export function wordsIn(chunk: JsonObject): number {
  let bytes = 0;
  for (const candidate of objects(chunk["candidates"]))
    for (const part of list(object(candidate["content"])?.["parts"])) bytes += size(object(part));
  return bytes;
}

function size(part: JsonObject | undefined): number {
  const said = text(part?.["text"]);
  if (said !== undefined) return Buffer.byteLength(said);
  const call = object(part?.["functionCall"]);
  return call ? Buffer.byteLength(JSON.stringify(call["args"] ?? {})) : 0;
}

/** Whether a chunk holds something that a client would show or run: thoughts too, and more than an empty text. */
export const says = (chunk: JsonObject): boolean =>
  objects(chunk["candidates"]).some((candidate) =>
    objects(object(candidate["content"])?.["parts"]).some((part) =>
      Object.keys(part).some((key) => !SILENT.has(key) && part[key] !== ""),
    ),
  );

const SILENT: ReadonlySet<string> = new Set(["thought", "thoughtSignature"]);
