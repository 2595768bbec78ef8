// Where an answer has its words from. Offsets on this wire count the bytes of UTF-8; everybody else counts characters.
import type { JsonObject, Json } from "../../model/values.ts";
import { list, object, text } from "./words.ts";

/** As OpenAI's clients know it. Indexes count code points of the text that it stands in. */
export interface Cited {
  readonly [member: string]: Json;
  readonly type: "url_citation";
  readonly start_index: number;
  readonly end_index: number;
  readonly url: string;
  readonly title: string;
}

/** All citations of a candidate that lie in this text. */
export function citationsIn(candidate: JsonObject, said: string): Cited[] {
  const grounding = object(candidate["groundingMetadata"]);
  const recited = object(candidate["citationMetadata"]);
  if (!grounding && !recited) return [];
  const bytes = Buffer.from(said);
  const found: Cited[] = [];
  const add = (from: number, to: number, source: JsonObject | undefined) => {
    const url = text(source?.["uri"]);
    if (!url) return;
    const start_index = pointsIn(bytes, from);
    const end_index = pointsIn(bytes, to);
    const title = text(source!["title"]) ?? "";
    found.push({ type: "url_citation", start_index, end_index, url, title });
  };
  const chunks = list(grounding?.["groundingChunks"]);
  for (const raw of list(grounding?.["groundingSupports"])) {
    const support = object(raw);
    const range = rangeOf(object(support?.["segment"]), bytes);
    if (!range) continue;
    for (const i of list(support?.["groundingChunkIndices"])) {
      const chunk = object(chunks[Number(i)]);
      add(...range, object(chunk?.["web"]) ?? object(chunk?.["maps"]));
    }
  }
  for (const raw of [...list(recited?.["citationSources"]), ...list(recited?.["citations"])]) {
    const source = object(raw);
    add(count(source?.["startIndex"]), count(source?.["endIndex"]), source);
  }
  return found;
}

/**
 * Which bytes a segment names. What it counts from differs (the part, the answer, the text without thoughts), but it
 * repeats the words: where they do not stand at its offset, they are looked for.
 */
function rangeOf(
  segment: JsonObject | undefined,
  bytes: Buffer,
): [from: number, to: number] | undefined {
  if (!segment) return undefined;
  const from = count(segment["startIndex"]);
  const to = count(segment["endIndex"]);
  const words = Buffer.from(text(segment["text"]) ?? "");
  if (words.length === 0) return to > 0 && to <= bytes.length ? [from, to] : undefined;
  if (bytes.subarray(from, to).equals(words)) return [from, to];
  const at = bytes.indexOf(words);
  return at < 0 ? undefined : [at, at + words.length];
}

const count = (v: unknown): number =>
  Number.isSafeInteger(v) && (v as number) > 0 ? (v as number) : 0;

/** Code points that begin before this byte. */
function pointsIn(bytes: Buffer, before: number): number {
  let points = 0;
  for (let i = 0; i < before && i < bytes.length; i++) if ((bytes[i]! & 0xc0) !== 0x80) points++;
  return points;
}
