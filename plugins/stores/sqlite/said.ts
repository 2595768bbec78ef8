// Terms as the file holds them: hashes stand for what labels say.
import type { Listed } from "./terms.ts";

export interface Said {
  readonly text: string;
  readonly key: string;
  /** The hashes in it. */
  readonly words: readonly string[];
  /** Whose saying it is. */
  readonly by: object | undefined;
  /** Which commit has listed it, and where. */
  listed: object | undefined;
  place: number;
  /** The newest chapter in which its words are known to be said. */
  chapter: number;
}
export function newSaid(text: string, by?: object): Said {
  const [key, , , , , , labels] = JSON.parse(text) as Listed;
  const words = Object.values(labels) as string[];
  return { text, key, words, by, listed: undefined, place: 0, chapter: -1 };
}
