// Finds data that only compacted rows used: key index rows and label texts. Runs in a separate
// thread.
import type { DatabaseSync } from "node:sqlite";
import { chapterOf } from "../data/key-index.ts";
import { COMPACTED_UP_TO_SQL, readCompactedUpTo } from "../data/checkpoint.ts";

/** Number of rows of each type per step. */
const LEFTOVERS_PER_STEP = 300;

export interface Leftovers {
  readonly keyChapters: readonly (readonly [key: string, chapter: number])[];
  readonly textHashes: readonly string[];
}
/** Position of the last leftovers found. */
export interface LeftoversCursor {
  readonly key: string;
  readonly chapter: number;
  readonly textId: number;
}
export interface FoundLeftovers extends Leftovers {
  /** All earlier chapters are compacted. */
  readonly firstChapter: number;
  /** Undefined if there are no more leftovers. */
  readonly after: LeftoversCursor | undefined;
}

export function findLeftovers(db: DatabaseSync, after: LeftoversCursor): FoundLeftovers {
  const edge = chapterOf(readCompactedUpTo(db.prepare(COMPACTED_UP_TO_SQL)) + 1);
  const mentions = db
    .prepare(
      "SELECT key, chapter FROM key_index WHERE (key, chapter) > (?, ?) AND chapter < ? ORDER BY key, chapter LIMIT ?",
    )
    .all(after.key, after.chapter, edge, LEFTOVERS_PER_STEP);
  const words = db
    .prepare(
      "SELECT w.id, w.hash FROM salted_text w LEFT JOIN text_chapter s ON s.hash = w.hash WHERE w.id > ? " +
        "AND w.text IS NOT NULL AND w.retained = 0 AND coalesce(s.chapter, -1) < ? ORDER BY w.id LIMIT ?",
    )
    .all(after.textId, edge, LEFTOVERS_PER_STEP);
  const [mention, word] = [mentions.at(-1), words.at(-1)];
  return {
    firstChapter: edge,
    keyChapters: mentions.map(({ key, chapter }) => [String(key), Number(chapter)]),
    textHashes: words.map(({ hash }) => String(hash)),
    after:
      mention || word
        ? {
            key: mention ? String(mention["key"]) : after.key,
            chapter: mention ? Number(mention["chapter"]) : after.chapter,
            textId: word ? Number(word["id"]) : after.textId,
          }
        : undefined,
  };
}
