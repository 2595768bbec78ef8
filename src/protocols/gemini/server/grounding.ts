// Encodes citations as grounding metadata: web sources with the range of UTF-8 bytes that each
// supports. Other protocols count code points.
import type { Json, JsonObject } from "../../../model/values.ts";
import { asObject, asText } from "../../json-values.ts";

interface Source {
  url: string;
  title: string;
  /** Offset in code points. Undefined if the citation has no position. */
  from: number | undefined;
  to: number | undefined;
}

/**
 * Returns the grounding metadata. Returns undefined if no citation is a web source.
 *
 * @param sentText The text that the citations refer to.
 */
export function grounding(sentText: SentText, citations: readonly Json[]): JsonObject | undefined {
  const sources = citations.flatMap((citation) => sourceOf(citation) ?? []);
  if (sources.length === 0) return undefined;
  const bytes = sentText.bytesAt(sources.flatMap(({ from, to }) => [from ?? 0, to ?? 0]));
  return {
    groundingChunks: sources.map(({ url, title }) => ({ web: { uri: url, title } })),
    groundingSupports: sources.flatMap(({ from, to }, i) => {
      if (from === undefined || to === undefined) return [];
      const [startIndex, endIndex] = [bytes.get(from)!, bytes.get(to)!];
      if (endIndex <= startIndex) return [];
      return [
        {
          segment: { ...(startIndex > 0 && { startIndex }), endIndex },
          groundingChunkIndices: [i],
        },
      ];
    }),
  };
}

/** Reads a citation in the form of OpenAI's protocols or of Anthropic's. */
function sourceOf(citation: Json): Source | undefined {
  const raw = asObject(citation);
  const of = asObject(raw?.["url_citation"]) ?? raw;
  const url = asText(of?.["url"]);
  if (!url) return undefined;
  return {
    url,
    title: asText(of!["title"]) ?? "",
    from: pointOf(of!["start_index"]),
    to: pointOf(of!["end_index"]),
  };
}

const pointOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;

/**
 * Text that was sent, kept for converting offsets. Runs of one-byte characters are only counted,
 * not stored.
 */
export class SentText {
  readonly #parts: { plain: number; text: string }[] = [];

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  add(text: string): void {
    // An empty text must not create a new part, because it could separate the two halves of a
    // character.
    if (text === "") return;
    const plain = Buffer.byteLength(text) === text.length;
    const last = this.#parts.at(-1);
    if (!last || plain !== (last.text === ""))
      this.#parts.push(plain ? { plain: text.length, text: "" } : { plain: 0, text });
    else if (plain) last.plain += text.length;
    else last.text += text;
  }

  /**
   * Returns the number of bytes before each offset. The text is scanned once, however often it is
   * cited.
   */
  bytesAt(places: readonly number[]): ReadonlyMap<number, number> {
    const wanted = [...new Set(places)].toSorted((a, b) => a - b);
    const found = new Map<number, number>();
    let next = 0;
    let point = 0;
    let bytes = 0;
    for (const { plain, text } of this.#parts) {
      for (; next < wanted.length && wanted[next]! < point + plain; next++)
        found.set(wanted[next]!, bytes + wanted[next]! - point);
      point += plain;
      bytes += plain;
      for (const letter of text) {
        while (next < wanted.length && wanted[next]! <= point) found.set(wanted[next++]!, bytes);
        if (next === wanted.length) return found;
        point++;
        bytes += Buffer.byteLength(letter);
      }
    }
    while (next < wanted.length) found.set(wanted[next++]!, bytes);
    return found;
  }
}
