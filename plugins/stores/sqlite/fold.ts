// What stands for rows once they are gone, worked out beside the writer: which commits may go, what their rows come to, what budgets had
// counted by then, and which of their reserves are spoken of later.
import type { DatabaseSync } from "node:sqlite";
import type { PrunePlan } from "tollgate/plugin";
import {
  createSubtotals,
  isCalendar,
  KEPT_MS,
  type LedgerRow,
  newMeter,
  type Subtotals,
  type Taken,
  used,
} from "tollgate/store";
import { type Base, carriedText, readBase, sumsLink, textHash } from "./standing.ts";
import { leftOpen } from "./left.ts";
import { goneUpTo } from "./audited.ts";
import { noteOf } from "./note.ts";
import { quarterOf } from "./sums-file.ts";
import { carriedIn, createShelf, rowsOf, type Shelf, STORED, type Stored } from "./stored.ts";

/** Entries that are taken together at most. */
const MOST = 1_000_000;
/** Entries that go in a second, about. */
const A_SECOND = 50_000;

/** A reserve that is kept apart, as its table has it. */
export interface CarriedRow {
  readonly seq: number;
  readonly attempt: string;
  /** Its settle is gone too. */
  readonly over: 0 | 1;
  readonly instance: string;
  readonly terms: string;
  readonly rows: string;
}

/** One of the sums, as its table has it. */
export type SumsRow = readonly [n: number, quarter: number, text: string, hash: string];

/** What the writer puts in the place of rows. */
export interface Folded {
  /** The base that this follows on. */
  readonly after: number;
  /** The newest entry when it was worked out. */
  readonly head: number;
  readonly last: number;
  readonly text: string;
  readonly carried: readonly CarriedRow[];
  readonly sums: readonly SumsRow[];
}

interface Cut {
  readonly segment: number;
  readonly last: number;
  readonly hash: string;
  readonly since: number;
  readonly till: number;
}

/** The last commit of those that may go; undefined: none may. `most`: entries. */
function cutOf(db: DatabaseSync, before: number, most: number): Cut | undefined {
  const base = readBase(db);
  const limit = oldestOpen(db);
  const segments = db.prepare(
    "SELECT id, last, hash, since, till FROM segment WHERE id > ? ORDER BY id",
  );
  const from = base?.last ?? 0;
  let [since, till] = [Infinity, -Infinity];
  let cut: Cut | undefined;
  for (const row of segments.iterate(base?.segment ?? 0)) {
    const last = Number(row["last"]);
    if (Number(row["till"]) >= before || last >= limit) break;
    since = Math.min(since, Number(row["since"]));
    till = Math.max(till, Number(row["till"]));
    cut = { segment: Number(row["id"]), last, hash: String(row["hash"]), since, till };
    if (last - from >= most) break;
  }
  return cut;
}

/** No entry before it is of an open call. */
function oldestOpen(db: DatabaseSync): number {
  const low = db.prepare("SELECT low FROM segment ORDER BY id DESC LIMIT 1").get()?.["low"];
  const listed = db.prepare("SELECT min(seq) AS seq FROM open").get()?.["seq"];
  return Math.min(Number(low ?? 0), Number(listed ?? Infinity));
}

export function planOf(db: DatabaseSync, before: number): PrunePlan {
  const base = readBase(db);
  const cut = cutOf(db, before, Infinity);
  const newest = Number(db.prepare("SELECT max(last) AS last FROM segment").get()?.["last"] ?? 0);
  const rows = cut ? cut.last - (base?.last ?? 0) : 0;
  const pages = Number(db.prepare("PRAGMA page_count").get()?.["page_count"]);
  const size = Number(db.prepare("PRAGMA page_size").get()?.["page_size"]);
  const share = rows / Math.max(1, newest - (base?.last ?? 0));
  const open = cut?.segment === lastOlder(db, before) ? undefined : leftOpen(db)[0]?.row;
  return {
    rows,
    bytes: Math.round(pages * size * share),
    ms: Math.round((rows / A_SECOND) * 1_000),
    ...(cut && { from: cut.since, to: cut.till }),
    ...(open && { open: { attempt: open.attempt, at: open.at } }),
  };
}

/** The last commit of the beginning that is older than that, whatever is open. */
function lastOlder(db: DatabaseSync, before: number): number | undefined {
  const base = readBase(db)?.segment ?? 0;
  const young = db
    .prepare("SELECT id FROM segment WHERE id > ? AND till >= ? ORDER BY id LIMIT 1")
    .get(base, before);
  const newest = db.prepare("SELECT max(id) AS id FROM segment").get()?.["id"];
  const last = young ? Number(young["id"]) - 1 : Number(newest ?? 0);
  return last > base ? last : undefined;
}

/** Undefined: no commit may go. */
export function fold(db: DatabaseSync, before: number, at: number): Folded | undefined {
  const cut = cutOf(db, before, MOST);
  if (!cut) return undefined;
  const base = readBase(db);
  const folding = new Folding(db, base);
  const batches = db.prepare(
    `SELECT ${STORED} FROM batch WHERE first > ? AND first <= ? ORDER BY first`,
  );
  for (const stored of batches.iterate(base?.last ?? 0, cut.last) as Iterable<unknown>)
    folding.add(stored as Stored);
  const newest = db.prepare("SELECT max(last) AS last FROM segment").get()?.["last"];
  return folding.end(cut, Number(newest), at);
}

interface Held {
  readonly seq: number;
  readonly taken: readonly Taken[];
  readonly kept: CarriedRow;
}

class Folding {
  readonly #db: DatabaseSync;
  readonly #base: Base | undefined;
  readonly #shelf: Shelf;
  readonly #open = new Map<string, Held>();
  readonly #spent: Map<string, bigint>;
  readonly #gone: Base["gone"][number][];
  readonly #quarters = new Map<number, Subtotals>();

  constructor(db: DatabaseSync, base: Base | undefined) {
    this.#db = db;
    this.#base = base;
    this.#shelf = createShelf(db);
    this.#spent = new Map(base?.meters.map(([id, sum]) => [id, BigInt(sum)]));
    this.#gone = [...(base?.gone ?? [])];
    for (const { over, ...stored } of carriedIn(db)) {
      const [row] = rowsOf(stored);
      if (row && !over) this.#hold(row, stored, 0);
    }
  }

  add(stored: Stored): void {
    const erased = noteOf(stored.rows)?.note.erased;
    if (erased) this.#gone.push([stored.first, erased.count, erased.sum]);
    rowsOf(stored).forEach((row, i) => {
      if (row.kind === "reserve") return this.#hold(row, stored, i);
      this.#sum(row);
      if (row.kind === "settle") {
        for (const [id, amount] of this.#open.get(row.attempt)?.taken ?? [])
          this.#count(id, used(newMeter(id).unit, amount, row));
        this.#open.delete(row.attempt);
      } else
        for (const [id] of this.#reserve(row.attempt)?.taken ?? [])
          if (newMeter(id).unit === "nano_usd") this.#count(id, row.costNano ?? 0n);
    });
  }

  end(cut: Cut, head: number, at: number): Folded {
    const base = this.#base;
    const carried = [...this.#open.values()].map(({ kept }) => kept);
    carried.push(...this.#spokenOf(cut.last));
    const sums = this.#sums();
    const text: Base = {
      segment: cut.segment,
      last: cut.last,
      hash: cut.hash,
      since: Math.min(cut.since, base?.since ?? Infinity),
      till: Math.max(cut.till, base?.till ?? -Infinity),
      rows: cut.last,
      at,
      sums: (base?.sums ?? 0) + sums.length,
      carried: carried.map((one) => [one.seq, textHash(carriedText(one))]),
      meters: this.#meters(cut.till),
      gone: this.#gone,
      audited: goneUpTo(this.#db, cut.last, base),
    };
    return {
      after: base?.last ?? 0,
      head,
      last: cut.last,
      text: JSON.stringify(text),
      carried,
      sums,
    };
  }

  #hold(row: LedgerRow, stored: Stored, i: number): void {
    const seq = stored.first + i;
    this.#open.set(row.attempt, { seq, taken: row.taken, kept: alone(row.attempt, stored, i, 0) });
  }

  #reserve(attempt: string): LedgerRow | undefined {
    return this.#shelf.row(this.#shelf.about(attempt)?.reserve ?? 0);
  }

  #sum(row: LedgerRow): void {
    const quarter = quarterOf(row.at);
    let sums = this.#quarters.get(quarter);
    if (!sums) this.#quarters.set(quarter, (sums = createSubtotals("keys")));
    sums.add(row);
  }

  #count(id: string, amount: bigint): void {
    if (isCalendar(newMeter(id).per)) this.#spent.set(id, (this.#spent.get(id) ?? 0n) + amount);
  }

  /** Windows that are over by then are forgotten by themselves. */
  #meters(till: number): [string, string][] {
    const live = [...this.#spent].filter(
      ([id, sum]) => sum !== 0n && newMeter(id).end + KEPT_MS >= till,
    );
    return live.map(([id, sum]) => [id, String(sum)]);
  }

  /** Reserves of calls that were over by then, and corrected later. */
  *#spokenOf(last: number): Generator<CarriedRow, void> {
    const later = this.#db.prepare("SELECT DISTINCT attempt FROM adjustment WHERE seq > ?");
    for (const { attempt } of later.all(last)) {
      const name = String(attempt);
      const seq = this.#shelf.about(name)?.reserve ?? Infinity;
      if (seq > last || this.#open.has(name)) continue;
      const stored = this.#shelf.holding(seq)!;
      yield alone(name, stored, seq - stored.first, 1);
    }
  }

  #sums(): SumsRow[] {
    const newest = this.#db.prepare(
      "SELECT n, hash FROM sums WHERE n <= ? ORDER BY n DESC LIMIT 1",
    );
    let hash = String(newest.get(this.#base?.sums ?? 0)?.["hash"] ?? "");
    let n = this.#base?.sums ?? 0;
    return [...this.#quarters]
      .sort(([a], [b]) => a - b)
      .map(([quarter, sums]): SumsRow => {
        const text = sums.text();
        hash = sumsLink(hash, quarter, text);
        return [++n, quarter, text, hash];
      });
  }
}

const PLACE = 5;
/** One row of a commit, as a commit of its own. */
function alone(attempt: string, stored: Stored, i: number, over: 0 | 1): CarriedRow {
  const row = (JSON.parse(stored.rows) as unknown[][])[i]!;
  const terms = (JSON.parse(stored.terms) as unknown[])[row[PLACE] as number];
  const { first, instance } = stored;
  return {
    seq: first + i,
    attempt,
    over,
    instance,
    terms: JSON.stringify([terms]),
    rows: JSON.stringify([row.with(PLACE, 0)]),
  };
}
