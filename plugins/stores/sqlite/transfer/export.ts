// Exports this ledger to another store. Rows are read while the gateway writes. The rest is read
// under the ledger lock.
import { DatabaseSync } from "node:sqlite";
import {
  fail,
  type AccountRecord,
  type AuditEnd,
  type AuditEntry,
  type JobRecord,
  type KeyRecord,
  type TransferredRemainder,
  type TransferredRows,
  type Price,
  type LedgerTotal,
} from "tollgate/plugin";
import {
  createTotals,
  fromJson,
  isSettledRow,
  toMovedRow,
  type LedgerRow,
  decodeCommit,
  COMPARED_TOTALS,
  TRANSFER_PAGE_ROWS,
  type TotalsQuery,
} from "tollgate/store";
import { readHead } from "../data/chain.ts";
import { readMeters, readOpenCalls } from "../data/open-calls.ts";
import { lockLedger } from "../lock.ts";
import { readCheckpoint, addCompactedRows } from "../data/checkpoint.ts";
import { readRetainedReserves, BATCH_COLUMNS, type StoredBatch } from "../data/stored-batch.ts";
import { createLabelResolver } from "../data/salted-text.ts";

export class LedgerExporter {
  readonly #file: string;
  readonly #db: DatabaseSync;
  #lock: ReturnType<typeof lockLedger> | undefined;

  constructor(file: string) {
    this.#file = file;
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  }

  readRows(after: number): TransferredRows {
    const base = readCheckpoint(this.#db);
    const spoken = createLabelResolver(this.#db);
    const moved = (row: LedgerRow) => toMovedRow({ ...row, labels: spoken.resolve(row.labels) });
    // The retained reserves whose settles are still rows of the ledger are exported first.
    if (after === 0 && base) {
      const stayed = [...readRetainedReserves(this.#db)].flatMap(({ isSettled, ...stored }) =>
        isSettled ? [] : decodeCommit(stored).map(moved),
      );
      if (stayed.length > 0) return { rows: stayed, next: base.last, more: true };
    }
    const rows: TransferredRows["rows"][number][] = [];
    let next = Math.max(after, base?.last ?? 0);
    const batches = this.#db.prepare(
      `SELECT ${BATCH_COLUMNS} FROM batch WHERE first > ? ORDER BY first`,
    );
    const last = this.#db.prepare("SELECT last FROM segment WHERE first = ?");
    for (const stored of batches.iterate(next) as Iterable<unknown> as Iterable<StoredBatch>) {
      if (rows.length >= TRANSFER_PAGE_ROWS) return { rows, next, more: true };
      for (const row of decodeCommit(stored)) rows.push(moved(row));
      next = Number(last.get(stored.first)?.["last"]);
    }
    return { rows, next, more: false };
  }

  stopWrites(): void {
    try {
      this.#lock = lockLedger(this.#file);
    } catch (error) {
      fail("conflict", (error as Error).message, { code: "in_use", cause: error });
    }
  }

  readRemainder(): TransferredRemainder {
    const db = this.#db;
    const records = <T>(table: string, order: string): T[] =>
      db
        .prepare(`SELECT record FROM ${table} ORDER BY ${order}`)
        .all()
        .map(({ record }) => fromJson<T>(String(record)));
    return {
      keys: records<KeyRecord>("key", "sort_key"),
      accounts: records<AccountRecord>("account", "id"),
      prices: db
        .prepare("SELECT hash, price FROM price ORDER BY hash")
        .all()
        .map(({ hash, price }) => [String(hash), fromJson<Price>(String(price))] as const),
      audit: readAudit(db),
      meters: [...readMeters(db)].map(({ id, level, at, max, notifiedLevel }) => ({
        id,
        level,
        at,
        max,
        notifiedLevel,
      })),
      lastProgress: readOpenCalls(db).flatMap(({ row, progress }) =>
        progress ? [[row.attempt, progress.usage, progress.costNano] as const] : [],
      ),
      jobs: records<JobRecord>("job", "cursor"),
      shared: [],
      rollups: readCheckpointSums(db),
      head: readHead(db).hash,
      totals: readTotals(db, COMPARED_TOTALS),
    };
  }

  close(): void {
    this.#lock?.release();
    this.#db.close();
  }
}

function readAudit(db: DatabaseSync): TransferredRemainder["audit"] {
  const ended = db.prepare("SELECT text FROM audit WHERE id = ? AND is_end = 1 LIMIT 1");
  return db
    .prepare("SELECT id, text FROM audit WHERE is_end = 0 ORDER BY seq")
    .all()
    .map(({ id, text }) => {
      const end = ended.get(String(id))?.["text"];
      return [
        JSON.parse(String(text)) as AuditEntry,
        typeof end === "string" ? (JSON.parse(end) as AuditEnd) : undefined,
      ] as const;
    });
}

function readCheckpointSums(db: DatabaseSync): TransferredRemainder["rollups"] {
  const base = readCheckpoint(db);
  if (!base) return undefined;
  const sums = db
    .prepare("SELECT quarter, text FROM checkpoint_rollup WHERE n <= ? ORDER BY n")
    .all(base.rollups);
  return {
    rows: base.rows,
    since: base.firstAt,
    until: base.lastAt,
    sums: sums.map(({ quarter, text }) => [Number(quarter), String(text)] as const),
  };
}

/** Returns the totals of all rows, including compacted rows. */
export function readTotals(db: DatabaseSync, by: TotalsQuery["by"]): readonly LedgerTotal[] {
  const totals = createTotals(by);
  addCompactedRows(db, totals, {});
  const batches = db.prepare(
    `SELECT ${BATCH_COLUMNS} FROM batch WHERE first > coalesce((SELECT last FROM checkpoint), 0) ORDER BY first`,
  );
  for (const stored of batches.iterate() as Iterable<unknown>)
    for (const row of decodeCommit(stored as StoredBatch))
      if (isSettledRow(row, undefined)) totals.add(row);
  return totals.totals();
}
