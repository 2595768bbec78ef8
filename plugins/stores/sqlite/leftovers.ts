// What only rows said that are gone: in which chapters a key has entries, and what labels said. Looked for beside the writer.
import type { DatabaseSync } from "node:sqlite";
import { chapterOf } from "./mention.ts";
import { PRUNED, prunedIn } from "./standing.ts";

/** Of one step. */
const AT_ONCE = 300;

export interface Leftovers {
  readonly mentions: readonly (readonly [key: string, chapter: number])[];
  readonly words: readonly string[];
}
/** The last ones that were found. */
export interface LeftoversAfter {
  readonly key: string;
  readonly chapter: number;
  readonly word: number;
}
export interface FoundLeftovers extends Leftovers {
  /** Chapters before it are gone. */
  readonly edge: number;
  /** Undefined: there is no more. */
  readonly after: LeftoversAfter | undefined;
}

export function leftoversOf(db: DatabaseSync, after: LeftoversAfter): FoundLeftovers {
  const edge = chapterOf(prunedIn(db.prepare(PRUNED)) + 1);
  const mentions = db
    .prepare(
      "SELECT key, chapter FROM mention WHERE (key, chapter) > (?, ?) AND chapter < ? ORDER BY key, chapter LIMIT ?",
    )
    .all(after.key, after.chapter, edge, AT_ONCE);
  const words = db
    .prepare(
      "SELECT w.id, w.hash FROM word w LEFT JOIN spoken s ON s.hash = w.hash WHERE w.id > ? " +
        "AND w.text IS NOT NULL AND w.kept = 0 AND coalesce(s.chapter, -1) < ? ORDER BY w.id LIMIT ?",
    )
    .all(after.word, edge, AT_ONCE);
  const [mention, word] = [mentions.at(-1), words.at(-1)];
  return {
    edge,
    mentions: mentions.map(({ key, chapter }) => [String(key), Number(chapter)]),
    words: words.map(({ hash }) => String(hash)),
    after:
      mention || word
        ? {
            key: mention ? String(mention["key"]) : after.key,
            chapter: mention ? Number(mention["chapter"]) : after.chapter,
            word: word ? Number(word["id"]) : after.word,
          }
        : undefined,
  };
}
