// Builds the checkpoint of a compaction in a separate thread. It determines the commits to compact,
// their totals, the usage of budgets at that point, and the reserves that later rows refer to.
import type { DatabaseSync } from "node:sqlite";
import type { PrunePlan } from "tollgate/plugin";
import {
  decodeCommit,
  extractRow,
  hashText,
  CheckpointSums,
  estimatePrune,
  extendCheckpoint,
  LedgerReplay,
  type CheckpointRollup,
} from "tollgate/store";
import { type Checkpoint, retainedReserveText, readCheckpoint } from "../data/checkpoint.ts";
import { readOpenCalls } from "../data/open-calls.ts";
import { compactedAuditUpTo } from "../audit-log.ts";
import { parseNote } from "../data/chain-note.ts";
import {
  readRetainedReserves,
  createRowLookup,
  type RowLookup,
  BATCH_COLUMNS,
  type StoredBatch,
} from "../data/stored-batch.ts";

/** Maximum number of entries per checkpoint. */
const MAX_ENTRIES = 1_000_000;
/** Approximate compaction speed, in entries per second. */
const ENTRIES_PER_SECOND = 50_000;

/** A retained reserve as its table stores it. */
export interface RetainedReserve {
  readonly seq: number;
  readonly attempt: string;
  /** Whether the settle was compacted too. */
  readonly isSettled: 0 | 1;
  readonly instance: string;
  readonly terms: string;
  readonly rows: string;
}

/** The data with which the writer replaces rows. */
export interface CompactionResult {
  /** Last entry of the previous checkpoint, or 0. */
  readonly after: number;
  /** The newest entry when the checkpoint was built. */
  readonly head: number;
  readonly last: number;
  readonly text: string;
  readonly retainedReserves: readonly RetainedReserve[];
  readonly rollups: readonly CheckpointRollup[];
}

interface CompactionRange {
  readonly segment: number;
  readonly last: number;
  readonly hash: string;
  readonly minAt: number;
  readonly maxAt: number;
}

/**
 * Returns the range of commits that can be compacted, or undefined if there is none.
 * @param most Number of entries after which the range ends.
 */
function findCompactionRange(
  db: DatabaseSync,
  before: number,
  most: number,
): CompactionRange | undefined {
  const base = readCheckpoint(db);
  const limit = oldestOpenCall(db);
  const segments = db.prepare(
    "SELECT id, last, hash, min_at, max_at FROM segment WHERE id > ? ORDER BY id",
  );
  const from = base?.last ?? 0;
  let [minAt, maxAt] = [Infinity, -Infinity];
  let cut: CompactionRange | undefined;
  for (const row of segments.iterate(base?.segment ?? 0)) {
    const last = Number(row["last"]);
    if (Number(row["max_at"]) >= before || last >= limit) break;
    minAt = Math.min(minAt, Number(row["min_at"]));
    maxAt = Math.max(maxAt, Number(row["max_at"]));
    cut = { segment: Number(row["id"]), last, hash: String(row["hash"]), minAt, maxAt };
    if (last - from >= most) break;
  }
  return cut;
}

/** Returns a sequence number such that no open call begins before it. */
function oldestOpenCall(db: DatabaseSync): number {
  const low = db.prepare("SELECT oldest_open FROM segment ORDER BY id DESC LIMIT 1").get()?.[
    "oldest_open"
  ];
  const listed = db.prepare("SELECT min(seq) AS seq FROM open_call").get()?.["seq"];
  return Math.min(Number(low ?? 0), Number(listed ?? Infinity));
}

export function planCompaction(db: DatabaseSync, before: number): PrunePlan {
  const base = readCheckpoint(db);
  const cut = findCompactionRange(db, before, Infinity);
  const newest = Number(db.prepare("SELECT max(last) AS last FROM segment").get()?.["last"] ?? 0);
  const from = base?.last ?? 0;
  const pages = Number(db.prepare("PRAGMA page_count").get()?.["page_count"]);
  const size = Number(db.prepare("PRAGMA page_size").get()?.["page_size"]);
  const open =
    cut?.segment === lastCommitBefore(db, before) ? undefined : readOpenCalls(db)[0]?.row;
  return estimatePrune(
    cut && { rows: cut.last - from, firstAt: cut.minAt, lastAt: cut.maxAt },
    { rows: newest - from, bytes: pages * size },
    ENTRIES_PER_SECOND,
    open,
  );
}

/**
 * Returns the last commit before the first commit that contains an entry at or after `before`.
 * Ignores open calls.
 */
function lastCommitBefore(db: DatabaseSync, before: number): number | undefined {
  const base = readCheckpoint(db)?.segment ?? 0;
  const young = db
    .prepare("SELECT id FROM segment WHERE id > ? AND max_at >= ? ORDER BY id LIMIT 1")
    .get(base, before);
  const newest = db.prepare("SELECT max(id) AS id FROM segment").get()?.["id"];
  const last = young ? Number(young["id"]) - 1 : Number(newest ?? 0);
  return last > base ? last : undefined;
}

/** Builds a checkpoint. Returns undefined if no commit can be compacted. */
export function buildCheckpoint(
  db: DatabaseSync,
  before: number,
  at: number,
): CompactionResult | undefined {
  const cut = findCompactionRange(db, before, MAX_ENTRIES);
  if (!cut) return undefined;
  const base = readCheckpoint(db);
  const folding = new CheckpointBuilder(db, base);
  const batches = db.prepare(
    `SELECT ${BATCH_COLUMNS} FROM batch WHERE first > ? AND first <= ? ORDER BY first`,
  );
  for (const stored of batches.iterate(base?.last ?? 0, cut.last) as Iterable<unknown>)
    folding.add(stored as StoredBatch);
  const newest = db.prepare("SELECT max(last) AS last FROM segment").get()?.["last"];
  return folding.finish(cut, Number(newest), at);
}

class CheckpointBuilder {
  readonly #db: DatabaseSync;
  readonly #checkpoint: Checkpoint | undefined;
  readonly #rows: RowLookup;
  readonly #replay: LedgerReplay<RetainedReserve>;
  readonly #erasures: Checkpoint["erasures"][number][];
  readonly #sums = new CheckpointSums();

  constructor(db: DatabaseSync, base: Checkpoint | undefined) {
    this.#db = db;
    this.#checkpoint = base;
    this.#rows = createRowLookup(db);
    this.#replay = new LedgerReplay(base?.meters, base?.jobs);
    this.#erasures = [...(base?.erasures ?? [])];
    for (const { isSettled, ...stored } of readRetainedReserves(db)) {
      const [row] = decodeCommit(stored);
      if (row && !isSettled) this.#replay.retain(row, toRetainedReserve(row.attempt, stored, 0, 0));
    }
  }

  add(stored: StoredBatch): void {
    const erased = parseNote(stored.rows)?.note.erased;
    if (erased) this.#erasures.push([stored.first, erased.count, erased.hash]);
    decodeCommit(stored).forEach((row, i) => {
      if (row.kind === "reserve")
        return this.#replay.reserve(row, toRetainedReserve(row.attempt, stored, i, 0));
      this.#sums.add(row);
      if (row.kind === "settle") this.#replay.settle(row);
      else this.#replay.adjust(row, this.#rows.findReserve(row.attempt));
    });
  }

  finish(cut: CompactionRange, head: number, at: number): CompactionResult {
    const base = this.#checkpoint;
    const carried = [...this.#replay.open.values()].map(({ data }) => data);
    carried.push(...this.#correctedReserves(cut.last));
    const rollups = this.#sums.rollups(base?.rollups ?? 0, this.#lastRollupHash());
    const jobs = this.#replay.openJobs();
    const text: Checkpoint = {
      segment: cut.segment,
      last: cut.last,
      hash: cut.hash,
      ...extendCheckpoint(base, {
        firstAt: cut.minAt,
        lastAt: cut.maxAt,
        rows: cut.last - (base?.last ?? 0),
        at,
        rollups: rollups.length,
      }),
      retainedReserves: carried.map((one) => [one.seq, hashText(retainedReserveText(one))]),
      // Windows that have ended by then are omitted, because their meters are dropped anyway.
      meters: this.#replay.liveWindows(cut.maxAt).map(([id, level]) => [id, String(level)]),
      ...(jobs.length > 0 && { jobs }),
      erasures: this.#erasures,
      audit: compactedAuditUpTo(this.#db, cut.last, base),
    };
    return {
      after: base?.last ?? 0,
      head,
      last: cut.last,
      text: JSON.stringify(text),
      retainedReserves: carried,
      rollups,
    };
  }

  /** Yields the reserves of compacted calls that later rows correct. */
  *#correctedReserves(last: number): Generator<RetainedReserve, void> {
    const later = this.#db.prepare("SELECT DISTINCT attempt FROM adjustment WHERE seq > ?");
    for (const { attempt } of later.all(last)) {
      const name = String(attempt);
      const seq = this.#rows.findCall(name)?.reserve ?? Infinity;
      if (seq > last || this.#replay.open.has(name)) continue;
      const stored = this.#rows.batchOf(seq)!;
      yield toRetainedReserve(name, stored, seq - stored.first, 1);
    }
  }

  #lastRollupHash(): string {
    const newest = this.#db.prepare("SELECT hash FROM checkpoint_rollup WHERE n = ?");
    return String(newest.get(this.#checkpoint?.rollups ?? 0)?.["hash"] ?? "");
  }
}

/** Extracts one row of a commit as a retained reserve. */
const toRetainedReserve = (
  attempt: string,
  stored: StoredBatch,
  i: number,
  isSettled: 0 | 1,
): RetainedReserve => ({ seq: stored.first + i, attempt, isSettled, ...extractRow(stored, i) });
