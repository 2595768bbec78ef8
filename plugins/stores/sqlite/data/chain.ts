// Verifies the ledger's hash chain. The chain proves that earlier rows were not edited since a
// chain head was recorded. It does not stop a process that can write to the file.
import type { DatabaseSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";
import { commitHash } from "tollgate/store";
import { readCheckpoint } from "./checkpoint.ts";
import { BATCH_COLUMNS, type StoredBatch } from "./stored-batch.ts";

/** The newest link of the chain. Operators can record it and compare it later. */
export interface ChainHead {
  segment: number;
  seq: number;
  hash: string;
}

interface Segment {
  id: number;
  first: number;
  last: number;
  hash: string;
}

const RECENT_COMMITS = 100;

export function readHead(db: DatabaseSync): ChainHead {
  const row = db.prepare("SELECT id, last, hash FROM segment ORDER BY id DESC LIMIT 1").get();
  return row
    ? { segment: Number(row["id"]), seq: Number(row["last"]), hash: String(row["hash"]) }
    : { segment: 0, seq: 0, hash: "" };
}

/** Verifies the last commits. Runs at every start, because a crash would damage those commits. */
export function verifyRecentCommits(db: DatabaseSync, file: string): void {
  const { segment } = readHead(db);
  for (const problem of verifyChain(db, Math.max(1, segment - RECENT_COMMITS + 1)))
    if (problem)
      throw new Error(
        `The ledger ${file} was changed after it was written: ${problem.message} Restore a backup, or move the file away to create a new ledger.`,
      );
}

/**
 * Verifies the chain from commit `since`, or from the first commit after the checkpoint. Yields
 * problems, and undefined after each commit so that the caller can do other work.
 */
export function* verifyChain(
  db: DatabaseSync,
  since: number,
): Generator<Problem | undefined, void> {
  const base = readCheckpoint(db);
  const least = (base?.segment ?? 0) + 1;
  const from = Math.max(since, least);
  const before = db.prepare("SELECT last, hash FROM segment WHERE id = ?");
  const batches = db.prepare(
    `SELECT ${BATCH_COLUMNS} FROM batch WHERE first BETWEEN ? AND ? ORDER BY first`,
  );
  // The first commit has no predecessor. Any commit before it is a problem.
  const previous =
    from > least ? before.get(from - 1) : (base as Record<string, unknown> | undefined);
  let last = Number(previous?.["last"] ?? 0);
  let hash = String(previous?.["hash"] ?? "");
  let id = from - 1;
  const segments = db.prepare(
    "SELECT id, first, last, hash FROM segment WHERE id >= ? ORDER BY id",
  );
  for (const segment of segments.iterate(from > 1 ? from : Number.MIN_SAFE_INTEGER) as Iterable<
    Record<string, unknown>
  >) {
    const s = segment as unknown as Segment;
    const path = `/segment/${s.id}`;
    if (s.id !== id + 1) yield { path, message: `Commit ${id + 1} is missing.` };
    if (s.first !== last + 1 || s.last < s.first)
      yield { path, message: `Commit ${s.id} does not follow entry ${last}.` };
    const found = batches.all(s.first, s.last) as unknown as StoredBatch[];
    const there = found.reduce((n, { rows }) => n + countRows(rows), 0);
    if (there !== s.last - s.first + 1)
      yield {
        path,
        message: `Only ${there} of the entries ${s.first} to ${s.last} exist.`,
      };
    if (found.length !== 1 || commitHash(hash, found[0]!) !== s.hash)
      yield {
        path,
        message: `The entries ${s.first} to ${s.last} were changed after they were written.`,
      };
    // Continues from the stored values, so that one change is reported as one problem.
    ({ id, last, hash } = s);
    yield undefined;
  }
  const more = db.prepare("SELECT count(*) AS n FROM batch WHERE first > ?").get(last)!["n"];
  if (Number(more) > 0)
    yield {
      path: "/batch",
      message: `${more} batches after entry ${last} do not belong to a commit.`,
    };
}

/**
 * Returns the number of rows, or 0 if the text is not a JSON list. A changed text may not be a list
 * at all.
 */
function countRows(rows: string): number {
  try {
    return (JSON.parse(rows) as unknown[]).length;
  } catch {
    return 0;
  }
}
