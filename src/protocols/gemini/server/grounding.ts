// Where words have come from: sources of the web, with the bytes of UTF-8 that each stands for. Other wires count code points.
import type { Json, JsonObject } from "../../../model/values.ts";
import { asObject, asText } from "../../json-values.ts";

interface Source {
  url: string;
  title: string;
  /** Code points; nothing where no place was told. */
  from: number | undefined;
  to: number | undefined;
}

/** `said`: the words that were cited. Undefined where no citation is one of the web. */
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

/** In the words of OpenAI's two protocols, and of Anthropic's. */
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

/** Words that have left, as far as a place in them may still be asked for: letters of one byte are counted and not kept. */
export class SentText {
  readonly #parts: { plain: number; text: string }[] = [];

  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  add(text: string): void {
    // Nothing may come between the two halves of a letter.
    if (text === "") return;
    const plain = Buffer.byteLength(text) === text.length;
    const last = this.#parts.at(-1);
    if (!last || plain !== (last.text === ""))
      this.#parts.push(plain ? { plain: text.length, text: "" } : { plain: 0, text });
    else if (plain) last.plain += text.length;
    else last.text += text;
  }

  /** How many bytes stand before each of these places: the words are walked once, however often they are cited. */
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
