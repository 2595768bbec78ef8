// The writer's part of a compaction: short steps between batches. First, rollups are written to a
// staging table. Then one commit replaces the rows with a checkpoint. After that commit, readers no
// longer see the rows, and later steps delete them from disk. If a run is interrupted, the next run
// continues it.
import type { DatabaseSync } from "node:sqlite";
import { hashText, type CheckpointRollup } from "tollgate/store";
import { readCheckpoint, type Checkpoint } from "../data/checkpoint.ts";
import type { RetainedReserve, CompactionResult } from "./compaction.ts";
import type { Leftovers } from "./leftovers.ts";
import type { LedgerSession } from "../write/ledger-session.ts";

/** Time that a step works before it commits, in milliseconds. The commit takes additional time. */
const STEP_MS = 10;
/** Number of pages freed at a time. */
const PAGES_PER_STEP = 64;

/** Deletes rollups that an earlier run staged and did not use. */
export function discardStaged(session: LedgerSession): void {
  session.runStep((db) => {
    db.prepare(
      "DELETE FROM checkpoint_rollup WHERE n > coalesce((SELECT rollups FROM checkpoint), 0)",
    ).run();
  });
}

export function stageRollups(session: LedgerSession, sums: readonly CheckpointRollup[]): void {
  session.runStep((db) => {
    const lay = db.prepare(
      "INSERT INTO checkpoint_rollup (n, quarter, text, hash) VALUES (?, ?, ?, ?)",
    );
    for (const row of sums) lay.run(...row);
  });
}

/**
 * Replaces rows by a checkpoint.
 * @returns False if the ledger changed in a way that invalidates the checkpoint. The caller then
 *   builds it again.
 */
export function applyCheckpoint(
  session: LedgerSession,
  folded: Omit<CompactionResult, "rollups">,
  at: number,
): boolean {
  return session.runStep((db, journal) => {
    const { after, last, text, retainedReserves } = folded;
    if ((readCheckpoint(db)?.last ?? 0) !== after || wasCorrectedSince(db, folded)) return false;
    const { rollups } = JSON.parse(text) as Checkpoint;
    db.prepare(
      "INSERT INTO checkpoint (id, last, rollups, text) VALUES (1, ?, ?, ?) " +
        "ON CONFLICT (id) DO UPDATE SET last = excluded.last, rollups = excluded.rollups, text = excluded.text",
    ).run(last, rollups, text);
    retainReserves(db, retainedReserves);
    const hash = String(
      db.prepare("SELECT hash FROM checkpoint_rollup WHERE n = ?").get(rollups)?.["hash"] ?? "",
    );
    journal.appendNote(at, { compacted: { last, checkpoint: hashText(text), rollups: hash } });
    return true;
  });
}

/**
 * Returns whether a compacted call was corrected since the checkpoint was built and its reserve is
 * not retained.
 */
function wasCorrectedSince(
  db: DatabaseSync,
  { head, last, retainedReserves }: Omit<CompactionResult, "rollups">,
): boolean {
  const later = db.prepare("SELECT attempt FROM adjustment WHERE seq > ?").all(head);
  const begun = db.prepare("SELECT first FROM call WHERE attempt = ?");
  const kept = new Set(retainedReserves.map(({ attempt }) => attempt));
  return later.some(
    ({ attempt }) =>
      Number(begun.get(String(attempt))?.["first"] ?? Infinity) <= last &&
      !kept.has(String(attempt)),
  );
}

function retainReserves(db: DatabaseSync, carried: readonly RetainedReserve[]): void {
  const kept = new Set(carried.map(({ seq }) => seq));
  const forget = db.prepare("DELETE FROM call WHERE attempt = ?");
  const done = db.prepare("DELETE FROM closed_call WHERE reserve = ?");
  for (const { seq, attempt } of db.prepare("SELECT seq, attempt FROM retained_reserve").all())
    if (!kept.has(Number(seq))) {
      forget.run(String(attempt));
      done.run(Number(seq));
    }
  db.exec("DELETE FROM retained_reserve");
  const keep = db.prepare(
    "INSERT INTO retained_reserve (seq, attempt, is_settled, instance, terms, rows) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const found = db.prepare("UPDATE call SET first = ? WHERE attempt = ?");
  for (const { seq, attempt, isSettled, instance, terms, rows } of carried) {
    keep.run(seq, attempt, isSettled, instance, terms, rows);
    found.run(seq, attempt);
    if (isSettled) done.run(seq);
  }
}

/** The result of one step. */
export interface StepResult {
  /** Number of entries deleted from disk. */
  readonly rows: number;
  readonly ms: number;
  /** Whether more steps remain. */
  readonly hasMore: boolean;
}

/** Deletes compacted commits, oldest first. */
export function deleteCompacted(session: LedgerSession): StepResult {
  return runTimed(() =>
    session.runStep((db) => {
      const last = readCheckpoint(db)?.last ?? 0;
      const say = prepareDeletes(db);
      let rows = 0;
      for (const began = performance.now(); performance.now() - began < STEP_MS;) {
        const found = say.oldest.get(last);
        if (!found) return { rows, hasMore: false };
        const [first, text] = [Number(found["first"]), String(found["rows"])];
        const end = Number(say.end.get(first)?.["last"] ?? first);
        say.calls.run(text);
        say.done.run(first, end);
        say.adjustments.run(text, last);
        say.batch.run(first);
        say.segment.run(end);
        rows += end - first + 1;
      }
      return { rows, hasMore: true };
    }),
  );
}

const prepareDeletes = (db: DatabaseSync) => ({
  oldest: db.prepare("SELECT first, rows FROM batch WHERE first <= ? ORDER BY first LIMIT 1"),
  end: db.prepare(
    "SELECT last FROM segment WHERE id = (SELECT min(id) FROM segment) AND first = ?",
  ),
  calls: db.prepare(
    "DELETE FROM call WHERE attempt IN (SELECT value ->> 2 FROM json_each(?) WHERE value ->> 0 = 'r') " +
      "AND attempt NOT IN (SELECT attempt FROM retained_reserve)",
  ),
  done: db.prepare(
    "DELETE FROM closed_call WHERE reserve BETWEEN ? AND ? AND reserve NOT IN (SELECT seq FROM retained_reserve)",
  ),
  adjustments: db.prepare(
    "DELETE FROM adjustment WHERE attempt IN (SELECT value ->> 2 FROM json_each(?) WHERE value ->> 0 = 'a') AND seq <= ?",
  ),
  batch: db.prepare("DELETE FROM batch WHERE first = ?"),
  segment: db.prepare("DELETE FROM segment WHERE id = (SELECT min(id) FROM segment) AND last <= ?"),
});

/**
 * Clears texts that only compacted rows used. The table rows are kept, because SQLite would leave
 * copies of moved data.
 */
export function clearLeftovers(
  session: LedgerSession,
  { keyChapters, textHashes }: Leftovers,
  edge: number,
): StepResult {
  session.db.exec("PRAGMA secure_delete = ON");
  const done = runTimed(() =>
    session.runStep((db, journal) => {
      const mention = db.prepare(
        "DELETE FROM key_index WHERE key = ? AND chapter = ? AND chapter < ?",
      );
      for (const [key, chapter] of keyChapters) mention.run(key, chapter, edge);
      const word = db.prepare(
        "UPDATE salted_text SET salt = NULL, text = NULL, erased_at_seq = 0 WHERE hash = ? AND retained = 0 AND erased_at_seq IS NULL " +
          "AND coalesce((SELECT chapter FROM text_chapter s WHERE s.hash = salted_text.hash), -1) < ?",
      );
      const spoken = db.prepare("DELETE FROM text_chapter WHERE hash = ? AND chapter < ?");
      for (const its of textHashes) {
        word.run(its, edge);
        spoken.run(its, edge);
      }
      // Later uses of these texts must store them again.
      if (textHashes.length > 0) journal.forgetTexts();
      return { rows: 0, hasMore: false };
    }),
  );
  session.db.exec("PRAGMA secure_delete = FAST");
  return done;
}

/** Returns some free pages to the file system. */
export function freePages({ db }: LedgerSession): StepResult {
  return runTimed(() => {
    const free = () => Number(db.prepare("PRAGMA freelist_count").get()?.["freelist_count"]);
    let before = free();
    for (const began = performance.now(); before > 0 && performance.now() - began < STEP_MS;) {
      db.prepare(`PRAGMA incremental_vacuum(${PAGES_PER_STEP})`).all();
      const after = free();
      if (after >= before) return { rows: 0, hasMore: false };
      before = after;
    }
    return { rows: 0, hasMore: before > 0 };
  });
}

function runTimed(work: () => Omit<StepResult, "ms">): StepResult {
  const began = performance.now();
  const done = work();
  return { ...done, ms: performance.now() - began };
}
