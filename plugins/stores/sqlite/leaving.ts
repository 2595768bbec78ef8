// This ledger on its way into another store, read beside the gateway that writes it; and then, with its lock, all that is no row.
import { DatabaseSync } from "node:sqlite";
import {
  fail,
  type AccountRecord,
  type AuditEnd,
  type AuditEntry,
  type KeyRecord,
  type MovedRest,
  type MovedRows,
  type Price,
} from "tollgate/plugin";
import { createTotals, fromJson, isCounted, movedRow, type LedgerRow } from "tollgate/store";
import { headOf } from "./chain.ts";
import { leftMeters, leftOpen } from "./left.ts";
import { lock } from "./lock.ts";
import { prunedSums } from "./pruned.ts";
import { readBase } from "./standing.ts";
import { carriedIn, rowsOf, STORED, type Stored } from "./stored.ts";
import { createSpoken } from "./words.ts";

/** Rows of a page. */
const PAGE = 5_000;
/** What rows of both stores have to come to. */
export const COMPARED = ["key", "model", "state", "price"] as const;

export class Leaving {
  readonly #file: string;
  readonly #db: DatabaseSync;
  #held: ReturnType<typeof lock> | undefined;

  constructor(file: string) {
    this.#file = file;
    this.#db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 });
  }

  rows(after: number): MovedRows {
    const base = readBase(this.#db);
    const spoken = createSpoken(this.#db);
    const moved = (row: LedgerRow) => movedRow({ ...row, labels: spoken.labels(row.labels) });
    // Reserves that were kept apart when rows were pruned, of calls that are settled in rows which are there.
    if (after === 0 && base) {
      const stayed = [...carriedIn(this.#db)].flatMap(({ over, ...stored }) =>
        over ? [] : rowsOf(stored).map(moved),
      );
      if (stayed.length > 0) return { rows: stayed, next: base.last, more: true };
    }
    const rows: MovedRows["rows"][number][] = [];
    let next = Math.max(after, base?.last ?? 0);
    const batches = this.#db.prepare(`SELECT ${STORED} FROM batch WHERE first > ? ORDER BY first`);
    const last = this.#db.prepare("SELECT last FROM segment WHERE first = ?");
    for (const stored of batches.iterate(next) as Iterable<unknown> as Iterable<Stored>) {
      if (rows.length >= PAGE) return { rows, next, more: true };
      for (const row of rowsOf(stored)) rows.push(moved(row));
      next = Number(last.get(stored.first)?.["last"]);
    }
    return { rows, next, more: false };
  }

  quiet(): void {
    try {
      this.#held = lock(this.#file);
    } catch (error) {
      fail("conflict", (error as Error).message, { code: "in_use", cause: error });
    }
  }

  rest(): MovedRest {
    const db = this.#db;
    const records = <T>(table: string, order: string): T[] =>
      db
        .prepare(`SELECT record FROM ${table} ORDER BY ${order}`)
        .all()
        .map(({ record }) => fromJson<T>(String(record)));
    return {
      keys: records<KeyRecord>("key", "place"),
      accounts: records<AccountRecord>("account", "id"),
      prices: db
        .prepare("SELECT hash, price FROM price ORDER BY hash")
        .all()
        .map(({ hash, price }) => [String(hash), fromJson<Price>(String(price))] as const),
      audit: auditedIn(db),
      meters: [...leftMeters(db)].map(({ id, level, at, max, told }) => ({
        id,
        level,
        at,
        max,
        told,
      })),
      heard: leftOpen(db).flatMap(({ row, heard }) =>
        heard ? [[row.attempt, heard.usage, heard.costNano] as const] : [],
      ),
      shared: [],
      pruned: prunedIn(db),
      head: headOf(db).hash,
      totals: totalsIn(db),
    };
  }

  end(): void {
    this.#held?.release();
    this.#db.close();
  }
}

function auditedIn(db: DatabaseSync): MovedRest["audit"] {
  const ended = db.prepare("SELECT text FROM audit WHERE id = ? AND ends = 1 LIMIT 1");
  return db
    .prepare("SELECT id, text FROM audit WHERE ends = 0 ORDER BY seq")
    .all()
    .map(({ id, text }) => {
      const end = ended.get(String(id))?.["text"];
      return [
        JSON.parse(String(text)) as AuditEntry,
        typeof end === "string" ? (JSON.parse(end) as AuditEnd) : undefined,
      ] as const;
    });
}

function prunedIn(db: DatabaseSync): MovedRest["pruned"] {
  const base = readBase(db);
  if (!base) return undefined;
  const sums = db.prepare("SELECT quarter, text FROM sums WHERE n <= ? ORDER BY n").all(base.sums);
  return {
    rows: base.rows,
    since: base.since,
    till: base.till,
    sums: sums.map(({ quarter, text }) => [Number(quarter), String(text)] as const),
  };
}

export function totalsIn(db: DatabaseSync): MovedRest["totals"] {
  const totals = createTotals(COMPARED);
  for (const [facts, amounts, at] of prunedSums(db, {})) totals.take(facts, amounts, at, {});
  const batches = db.prepare(
    `SELECT ${STORED} FROM batch WHERE first > coalesce((SELECT last FROM base), 0) ORDER BY first`,
  );
  for (const stored of batches.iterate() as Iterable<unknown>)
    for (const row of rowsOf(stored as Stored)) if (isCounted(row, undefined)) totals.add(row);
  return totals.totals();
}
