// Repeatable pseudo-random numbers: the same values give the same numbers.
import { createHash } from "node:crypto";

/** Returns a hex digest of the values. */
export const digestOf = (...of: readonly unknown[]): string =>
  createHash("sha256").update(JSON.stringify(of)).digest("hex");

/** Creates a generator of numbers in [0, 1). */
export function createSeededRandom(...of: readonly unknown[]): () => number {
  let state = Number.parseInt(digestOf(...of).slice(0, 8), 16);
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}
