import { createSeededRandom } from "./seeded-random.ts";

const WORDS =
  "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore magna aliqua enim ad minim veniam quis nostrud exercitation ullamco laboris nisi aliquip ex ea commodo consequat".split(
    " ",
  );
export const DEFAULT_WORDS = 50;
export const MAX_WORDS = 100_000;

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
