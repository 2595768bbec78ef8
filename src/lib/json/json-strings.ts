// Finds the ends of strings in the bytes of a JSON text, in time that is linear in its length for
// any input.
import { BOUNDS } from "../bounds.ts";

export const MAX_ESCAPES = BOUNDS.jsonEscapes.max;

/** Bytes that the loop scans first. In longer strings, the native search is faster. */
const LONG = 32;

/**
 * Bytes that the loop scans after an escape before it uses the native search again. Escapes tend to
 * occur in groups.
 */
const AMONG_ESCAPES = 256;

/**
 * Finds the ends of strings and counts their escapes. The positions that native searches return are
 * kept until they are passed, so a text with many escapes is searched once in total and not once
 * per escape.
 */
export class StringScanner {
  escapes = 0;
  readonly #b: Buffer;
  #quote = -1;
  #slash = -1;

  constructor(b: Buffer) {
    this.#b = b;
  }

  /**
   * Returns the offset of the closing quote of the string that opens at `i`, or the length of the
   * text if it does not close.
   */
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

/**
 * Returns the offset of the closing quote of the string that opens at `i`, or the length of the
 * text if it does not close.
 */
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
