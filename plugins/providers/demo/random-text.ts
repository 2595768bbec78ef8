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

const WORDS = [
  "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor",
  "incididunt ut labore et dolore magna aliqua enim ad minim veniam quis nostrud",
  "exercitation ullamco laboris nisi aliquip ex ea commodo consequat",
].flatMap((line) => line.split(" "));
const DEFAULT_WORDS = 50;
const MAX_WORDS = 100_000;

/** Returns the number of words that the text requests: its last number. */
export function requestedWords(text: string): number {
  const numbers = text.match(/\d{1,9}/g);
  return numbers ? Math.min(Number(numbers[numbers.length - 1]), MAX_WORDS) : DEFAULT_WORDS;
}

/** Returns a number of words in sentences of 4 to 11 words. */
export function lorem(n: number, ...seed: readonly unknown[]): string {
  const next = createSeededRandom("lorem", ...seed);
  const sentences: string[] = [];
  let left = 0;
  for (let i = 0; i < n; i++) {
    let word = WORDS[Math.floor(next() * WORDS.length)]!;
    if (left === 0) {
      left = 4 + Math.floor(next() * 8);
      word = word[0]!.toUpperCase() + word.slice(1);
    }
    left--;
    sentences.push(left === 0 || i === n - 1 ? `${word}.` : word);
  }
  return sentences.join(" ");
}
