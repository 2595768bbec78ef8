// Where a key's entries are, roughly: chapter by chapter. A row for every commit and key would touch a page of the file for
// each of them; so a chapter is told once that it has entries of a key, and a reader that looks for them reads its terms.
import type { DatabaseSync } from "node:sqlite";
import type { HashedTerms } from "./hashed-terms.ts";

/** Entries in a chapter. */
export const CHAPTER_ENTRIES = 4_096;
export const chapterOf = (first: number): number => Math.floor(first / CHAPTER_ENTRIES);

export interface KeyIndex {
  add(terms: readonly HashedTerms[], first: number): void;
  rollback(): void;
  commit(): void;
}

export function createKeyIndex(db: DatabaseSync): KeyIndex {
  const mention = db.prepare(
    "INSERT INTO key_index (key, chapter) VALUES (?, ?) ON CONFLICT DO NOTHING",
  );
  /** The keys that this chapter is known to have; conflicts say no more than that. */
  let keys = new Set<string>();
  let chapter = -1;
  let fresh: string[] = [];
  return {
    add(terms, first) {
      if (chapter !== chapterOf(first)) {
        chapter = chapterOf(first);
        keys = new Set();
      }
      for (const { key } of terms) {
        if (keys.has(key)) continue;
        keys.add(key);
        fresh.push(key);
        mention.run(key, chapter);
      }
    },
    rollback() {
      for (const key of fresh) keys.delete(key);
      fresh = [];
    },
    commit: () => void (fresh = []),
  };
}
