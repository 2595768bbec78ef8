// Terms as the file holds them: with hashes in place of label texts.
import type { TermsTuple } from "tollgate/store";

export interface HashedTerms {
  readonly text: string;
  readonly key: string;
  /** The hashes that the text contains. */
  readonly textHashes: readonly string[];
  /**
   * Token of the `SaltedTexts` state that produced the hashes. The hashes are invalid if the token
   * has changed.
   */
  readonly owner: object | undefined;
  /** The commit that listed these terms last, and their index in it. */
  listedIn: object | undefined;
  index: number;
  /** The newest chapter in which these hashes are recorded. */
  chapter: number;
}
export function createHashedTerms(text: string, by?: object): HashedTerms {
  const [key, , , , , , labels] = JSON.parse(text) as TermsTuple;
  const words = Object.values(labels) as string[];
  return { text, key, textHashes: words, owner: by, listedIn: undefined, index: 0, chapter: -1 };
}
