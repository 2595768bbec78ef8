// Converts grounding metadata into citations. Offsets in this protocol count UTF-8 bytes. All other
// protocols count characters.
import type { JsonObject, Json } from "../../../model/values.ts";
import { BOUNDS } from "../../../lib/bounds.ts";
import { asList, asObject, asText } from "../../json-values.ts";

/** A citation in the form of OpenAI's protocols. Indexes count code points of the text block. */
export interface Citation {
  readonly [member: string]: Json;
  readonly type: "url_citation";
  readonly start_index: number;
  readonly end_index: number;
  readonly url: string;
  readonly title: string;
}

/** Index of a growing text. Each byte is read once, however often the text is cited. */
export class CitationIndex {
  #new: string[] = [];
  #bytes = Buffer.alloc(0);
  #length = 0;
  /** Number of code points that begin before each multiple of `INDEX_STRIDE` bytes. */
  readonly #points: number[] = [0];
  /** Remaining bytes that may be searched for cited text that is not at its stated offset. */
  #searchBudget: number = BOUNDS.citationSearch.max;

  get empty(): boolean {
    return this.#length === 0 && this.#new.length === 0;
  }

  add(textContent: string): void {
    this.#new.push(textContent);
  }

  /** Returns all citations of a candidate that refer to this text. */
  citations(candidate: JsonObject): Citation[] {
    const grounding = asObject(candidate["groundingMetadata"]);
    const recited = asObject(candidate["citationMetadata"]);
    if (!grounding && !recited) return [];
    this.#read();
    const found: Citation[] = [];
    const add = (from: number, to: number, source: JsonObject | undefined) => {
      const url = asText(source?.["uri"]);
      if (!url) return;
      const start_index = this.#pointsIn(from);
      const end_index = this.#pointsIn(to);
      const title = asText(source!["title"]) ?? "";
      found.push({ type: "url_citation", start_index, end_index, url, title });
    };
    const chunks = asList(grounding?.["groundingChunks"]);
    for (const raw of asList(grounding?.["groundingSupports"])) {
      const support = asObject(raw);
      const range = this.#rangeOf(asObject(support?.["segment"]));
      if (!range) continue;
      for (const i of asList(support?.["groundingChunkIndices"])) {
        const chunk = asObject(chunks[Number(i)]);
        add(...range, asObject(chunk?.["web"]) ?? asObject(chunk?.["maps"]));
      }
    }
    for (const raw of [
      ...asList(recited?.["citationSources"]),
      ...asList(recited?.["citations"]),
    ]) {
      const source = asObject(raw);
      add(count(source?.["startIndex"]), count(source?.["endIndex"]), source);
    }
    return found;
  }

  /** Indexes the text that was added since the last call. */
  #read(): void {
    if (this.#new.length === 0) return;
    const more = Buffer.from(this.#new.join(""));
    this.#new = [];
    const length = this.#length + more.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(2 * length);
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    more.copy(this.#bytes, this.#length);
    this.#length = length;
    for (let at = this.#points.length * INDEX_STRIDE; at <= length; at += INDEX_STRIDE)
      this.#points.push(this.#points.at(-1)! + countCodePoints(this.#bytes, at - INDEX_STRIDE, at));
  }

  /** Returns the number of code points that begin before this byte. */
  #pointsIn(before: number): number {
    const end = Math.min(before, this.#length);
    const known = Math.floor(end / INDEX_STRIDE);
    return this.#points[known]! + countCodePoints(this.#bytes, known * INDEX_STRIDE, end);
  }

  /**
   * Returns the byte range of a segment. Its offsets are relative to the part, to the response, or
   * to the text without reasoning. A segment repeats the cited text, so if the text is not at its
   * offset, it is searched for.
   */
  #rangeOf(segment: JsonObject | undefined): [from: number, to: number] | undefined {
    if (!segment) return undefined;
    const bytes = this.#bytes.subarray(0, this.#length);
    const from = count(segment["startIndex"]);
    const to = count(segment["endIndex"]);
    const words = Buffer.from(asText(segment["text"]) ?? "");
    if (words.length === 0) return to > 0 && to <= bytes.length ? [from, to] : undefined;
    if (bytes.subarray(from, to).equals(words)) return [from, to];
    if (this.#searchBudget <= 0) return undefined;
    const at = bytes.indexOf(words);
    this.#searchBudget -= at < 0 ? bytes.length : at;
    return at < 0 ? undefined : [at, at + words.length];
  }
}

const INDEX_STRIDE = 64;

/** Returns the number of code points that begin in [from, to). */
function countCodePoints(bytes: Buffer, from: number, to: number): number {
  let points = 0;
  for (let i = from; i < to; i++) if ((bytes[i]! & 0xc0) !== 0x80) points++;
  return points;
}

const count = (v: unknown): number =>
  Number.isSafeInteger(v) && (v as number) > 0 ? (v as number) : 0;
