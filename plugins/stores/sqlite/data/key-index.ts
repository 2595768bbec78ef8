// An approximate index from keys to their entries, chapter by chapter. One row per commit and key
// would cause a write of one page per row. Each chapter (a range of entries) therefore records a
// key once, and readers filter the chapter's terms.
import type { DatabaseSync } from "node:sqlite";
import type { HashedTerms } from "./hashed-terms.ts";

/** Number of entries in a chapter. */
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
  /**
   * Keys that are already recorded for the current chapter. If a recorded key is missing from this
   * set, its insert causes a conflict and has no effect.
   */
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
