// Terms as the file holds them: hashes stand for what labels say.
import type { TermsTuple } from "./call-terms.ts";

export interface HashedTerms {
  readonly text: string;
  readonly key: string;
  /** The hashes in it. */
  readonly textHashes: readonly string[];
  /** Whose saying it is. */
  readonly owner: object | undefined;
  /** Which commit has listed it, and where. */
  listedIn: object | undefined;
  index: number;
  /** The newest chapter in which its words are known to be said. */
  chapter: number;
}
export function createHashedTerms(text: string, by?: object): HashedTerms {
  const [key, , , , , , labels] = JSON.parse(text) as TermsTuple;
  const words = Object.values(labels) as string[];
  return { text, key, textHashes: words, owner: by, listedIn: undefined, index: 0, chapter: -1 };
}
