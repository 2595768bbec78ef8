// Where the strings in the bytes of a JSON text end, in time that is linear in their length whatever stands in them.
import { BOUNDS } from "../bounds.ts";

export const MAX_ESCAPES = BOUNDS.jsonEscapes.max;

/** Above this many bytes without a quote, the native search is cheaper than our loop. */
const LONG = 32;

/** Where there was an escape there are more: so far our loop goes before it asks for the next one. */
const AMONG_ESCAPES = 256;

/**
 * Where strings end, and how many escapes they have. What native searches found is remembered until it is behind: a text
 * with an escape every so many bytes is looked through once, not once for each.
 */
export class StringScanner {
  escapes = 0;
  readonly #b: Buffer;
  #quote = -1;
  #slash = -1;

  constructor(b: Buffer) {
    this.#b = b;
  }

  /** The closing quote of the string that opens at `i`; the text's end where it does not close. */
  end(i: number): number {
    const b = this.#b;
    let j = i + 1;
    let run = LONG;
    while (j < b.length && this.escapes <= MAX_ESCAPES) {
      for (const near = Math.min(j + run, b.length); j < near; j++) {
        const c = b[j];
        if (c === 34) return j;
        if (c === 92) {
          this.escapes++;
          j++;
        }
      }
      run = AMONG_ESCAPES;
      if (this.#quote < j) this.#quote = orNever(b.indexOf(34, j));
      if (this.#slash < j) this.#slash = orNever(b.indexOf(92, j));
      if (this.#quote < this.#slash) return this.#quote;
      j = this.#slash;
    }
    return b.length;
  }
}

const orNever = (at: number): number => (at < 0 ? Infinity : at);

/** The closing quote of the string that opens at `i`. */
export function endOfString(b: Buffer, i: number): number {
  let j = i + 1;
  while (j < b.length) {
    for (const near = Math.min(j + LONG, b.length); j < near; j++) {
      const c = b[j];
      if (c === 34) return j;
      if (c === 92) j++;
    }
    const q = b.indexOf(34, j);
    if (q < 0) break;
    let slashes = 0;
    while (q - 1 - slashes >= j && b[q - 1 - slashes] === 92) slashes++;
    if (slashes % 2 === 0) return q;
    j = q + 1;
  }
  return b.length;
}
