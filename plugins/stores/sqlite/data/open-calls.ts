// Reads the state that the previous owner left: meters and open calls.
import type { DatabaseSync } from "node:sqlite";
import {
  type LedgerRow,
  type Meter,
  createMeter,
  type Progress,
  decodeCommit,
  decodeLineAmounts,
} from "tollgate/store";
import { BATCH_COLUMNS, type StoredBatch } from "./stored-batch.ts";

export function insertInstance(db: DatabaseSync, name: string, at: number): number {
  const { lastInsertRowid } = db
    .prepare("INSERT INTO instance (name, pid, started, last_heartbeat) VALUES (?, ?, ?, ?)")
    .run(name, process.pid, at, at);
  return Number(lastInsertRowid);
}

export function* readMeters(db: DatabaseSync): Iterable<Meter> {
  for (const m of db.prepare("SELECT id, level, at, max, notified_level FROM meter").iterate())
    yield {
      ...createMeter(m["id"] as string),
      level: BigInt(m["level"] as string),
      at: Number(m["at"]),
      max: BigInt(m["max"] as string),
      notifiedLevel: BigInt(m["notified_level"] as string),
    };
}

export interface LeftOpenCall {
  row: LedgerRow;
  seq: number;
  /** The first entry of the commit that contains the reserve. */
  firstSeq: number;
  /** Whether table `open_call` lists the call. */
  isListed: boolean;
  progress: Progress | undefined;
  /** For a job: the amounts that its lines took. */
  lineAmounts: readonly bigint[] | undefined;
}

const UNLISTED = { progress: undefined, lineAmounts: undefined };

/**
 * Reads the listed calls, and the open calls among entries since the oldest unlisted open call.
 * Sorted by sequence number.
 */
export function readOpenCalls(db: DatabaseSync): LeftOpenCall[] {
  const found = new Map<string, LeftOpenCall>();
  const keep = (left: LeftOpenCall): void => void found.set(left.row.attempt, left);
  const low =
    db.prepare("SELECT oldest_open FROM segment ORDER BY id DESC LIMIT 1").get()?.["oldest_open"] ??
    0;
  const since = db.prepare(`SELECT ${BATCH_COLUMNS} FROM batch WHERE first >= ? ORDER BY first`);
  for (const stored of since.iterate(low) as Iterable<unknown> as Iterable<StoredBatch>) {
    const { first } = stored;
    decodeCommit(stored).forEach((row, i) => {
      if (row.kind === "reserve")
        keep({ row, seq: first + i, firstSeq: first, isListed: false, ...UNLISTED });
      if (row.kind === "settle") found.delete(row.attempt);
    });
  }
  const lists = db.prepare(
    `SELECT seq, usage, cost, line_amounts AS lines, ${BATCH_COLUMNS} FROM open_call JOIN batch ON first = (SELECT max(first) FROM batch WHERE first <= seq)`,
  );
  lists.setReadBigInts(true);
  for (const { seq, usage, cost, lines, first, ...texts } of lists.iterate()) {
    const stored = { ...texts, first: Number(first) } as unknown as StoredBatch;
    const row = decodeCommit(stored)[Number(seq) - stored.first]!;
    // The call is listed because it has been open for long. It has not reported progress.
    const silent = usage === "{}" && cost === null;
    const progress = { usage: JSON.parse(String(usage)), costNano: cost as bigint | null };
    keep({
      row,
      seq: Number(seq),
      firstSeq: stored.first,
      isListed: true,
      progress: silent ? undefined : progress,
      lineAmounts: lines === null ? undefined : decodeLineAmounts(String(lines)),
    });
  }
  return [...found.values()].sort((a, b) => a.seq - b.seq);
}
