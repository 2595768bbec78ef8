// A stream repeats itself: chunk after chunk, everything is the same but the words. One that differs from another in its words alone
// says them and nothing else, and need not be parsed.
//
// Why that is safe: around the words both texts are equal, and have no escapes in which another key could hide. The words stand between
// two quotes, with no quote in them, no escape, and nothing that must not stand in a string. So both texts parse to the same but for that
// one string, which is the words as they stand.

const KEY = '"content"';
/** What stands in a string as itself, as RFC 8259 has it: all but quotes, backslashes and control characters. */
const PLAIN = /^[ !#-[\]-\uffff]*$/;
/** A stream in which no chunk is like another is not worth the trying. */
const MAX_MISSES = 12;

export class ChunkTemplate {
  #before = "";
  #after = "";
  #misses = 0;

  /** What a chunk says that is like the one that was learned. */
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

  /** Of a chunk that has said its content and nothing else. */
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
