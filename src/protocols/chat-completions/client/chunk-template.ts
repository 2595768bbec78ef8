// Reads repetitive chunks without parsing them. In a stream, most chunks are equal except for their
// text. If a chunk differs from a parsed chunk only in its text, it contains nothing else that is
// new.
//
// This is safe for two reasons. Outside the text, both chunks are equal and contain no escapes in
// which another key could hide. The text is between two quotes and contains no quote, no escape,
// and no character that is illegal in a string. Both chunks therefore parse to the same value
// except for that one string, which is the text verbatim.

const KEY = '"content"';
/**
 * Matches characters that represent themselves in a JSON string (RFC 8259): all except quotes,
 * backslashes, and control characters.
 */
const PLAIN = /^[ !#-[\]-\uffff]*$/;
/** Number of chunks without a match after which matching is disabled for the stream. */
const MAX_MISSES = 12;

export class ChunkTemplate {
  #before = "";
  #after = "";
  #misses = 0;

  /**
   * Returns the content text of a chunk that equals the learned chunk except for its text. Returns
   * undefined for any other chunk.
   */
  matchContent(data: string): string | undefined {
    const from = this.#before.length;
    const to = data.length - this.#after.length;
    if (from === 0 || from > to) return undefined;
    if (!data.startsWith(this.#before) || !data.endsWith(this.#after)) return undefined;
    const words = data.slice(from, to);
    if (!PLAIN.test(words)) return undefined;
    this.#misses = 0;
    return words;
  }

  /** Learns from a chunk that contains only content. */
  learn(data: string): void {
    if (this.#misses > MAX_MISSES) return;
    this.#before = "";
    if (++this.#misses > MAX_MISSES) return;
    const key = data.indexOf(KEY);
    if (key !== data.lastIndexOf(KEY) || data.includes("\\")) return;
    const from = data.indexOf('"', key + KEY.length) + 1;
    this.#before = data.slice(0, from);
    this.#after = data.slice(data.indexOf('"', from));
  }
}
