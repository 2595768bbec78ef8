// Whether everything that is told by the entries alone is what they tell: the sums, the list of open calls, and the
// lookups, which are how an entry is found. Entry by entry, in their order.
import type { DatabaseSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";
import { isCalendar, KEPT_MS, type LedgerRow, newMeter, type Taken, used } from "tollgate/store";
import { AuditedAudit } from "./audited.ts";
import { type Base, checkBase, readBase } from "./standing.ts";
import { LookupAudit, type Wrong } from "./lookup-audit.ts";
import { noteOf } from "./note.ts";
import type { Note } from "./note.ts";
import { carriedIn, createShelf, rowsOf, type Shelf, type Stored } from "./stored.ts";
import { SumsAudit } from "./sums-audit.ts";
import type { Samples } from "./sums.ts";
import { WordAudit } from "./word-audit.ts";

interface OpenedCall {
  readonly seq: number;
  readonly taken: readonly Taken[];
}

/** Hands every commit to `add`, in order; then `problems` has what is wrong. */
export class Audit {
  readonly #db: DatabaseSync;
  readonly #lookups: LookupAudit;
  readonly #open = new Map<string, OpenedCall>();
  readonly #spent = new Map<string, bigint>();
  readonly #problems: Problem[] = [];
  readonly #shelf: Shelf;
  #summed: SumsAudit | undefined;
  readonly #words: WordAudit;
  readonly #audited: AuditedAudit;
  #pruned: Note["pruned"];
  #latest = 0;

  /** `samples`: sums that were made of entries before. */
  constructor(db: DatabaseSync, samples?: Samples) {
    this.#db = db;
    this.#shelf = createShelf(db);
    this.#lookups = new LookupAudit(db, this.#wrong);
    this.#words = new WordAudit(db, this.#wrong);
    const base = readBase(db);
    this.#audited = new AuditedAudit(db, base);
    if (base) this.#begin(base);
    // Sums from before a prune are made anew by themselves.
    if (samples?.pruned === (base?.last ?? 0)) this.#summed = new SumsAudit(samples, this.#wrong);
  }

  /** What the rows that are gone have left. */
  #begin({ meters, gone, till }: Base): void {
    this.#latest = till;
    for (const [id, sum] of meters) this.#spent.set(id, BigInt(sum));
    for (const [seq, count, sum] of gone) this.#words.erased(seq, { count, sum });
    for (const { over, ...stored } of carriedIn(this.#db)) {
      const [row] = rowsOf(stored);
      if (!row) continue;
      this.#lookups.reserve(row, stored.first);
      if (!over) this.#open.set(row.attempt, { seq: stored.first, taken: row.taken });
    }
  }

  add(stored: Stored): void {
    const noted = noteOf(stored.rows);
    if (noted?.note.erased) this.#words.erased(stored.first, noted.note.erased);
    if (noted?.note.audit) this.#audited.note(stored.first, noted.note.audit);
    if (noted?.note.pruned) this.#pruned = noted.note.pruned;
    const rows = rowsOf(stored);
    this.#words.add(rows);
    this.#lookups.commit(stored, rows);
    rows.forEach((row, i) => {
      this.#latest = Math.max(this.#latest, row.at);
      const seq = stored.first + i;
      this.#summed?.row(row, seq);
      if (row.kind === "reserve") {
        this.#lookups.reserve(row, stored.first);
        this.#open.set(row.attempt, { seq, taken: row.taken });
      } else if (row.kind === "settle") this.#settled(row, stored.first);
      else this.#adjusted(row, seq);
    });
  }

  problems(): Problem[] {
    this.#problems.push(...checkBase(this.#db, this.#pruned));
    this.#problems.push(...this.#audited.problems());
    this.#words.check();
    this.#sums();
    this.#lookups.counts();
    this.#lists();
    this.#summed?.problems();
    return this.#problems;
  }

  readonly #wrong: Wrong = (path, message) => void this.#problems.push({ path, message });

  #count(id: string, amount: bigint): void {
    if (isCalendar(newMeter(id).per)) this.#spent.set(id, (this.#spent.get(id) ?? 0n) + amount);
  }

  #settled(row: LedgerRow, first: number): void {
    const reserve = this.#open.get(row.attempt);
    if (!reserve || !this.#open.delete(row.attempt))
      return this.#wrong(`/entry/${row.attempt}`, "A settle without its reserve.");
    this.#lookups.settle(row, reserve.seq, first);
    for (const [id, amount] of reserve.taken) this.#count(id, used(newMeter(id).unit, amount, row));
  }

  #adjusted(row: LedgerRow, seq: number): void {
    this.#lookups.adjustment(row, seq);
    const reserve = this.#shelf.row(this.#shelf.about(row.attempt)?.reserve ?? 0);
    for (const [id] of reserve?.taken ?? [])
      if (newMeter(id).unit === "nano_usd") this.#count(id, row.costNano ?? 0n);
  }

  #sums(): void {
    const spent = this.#spent;
    for (const found of this.#db.prepare("SELECT id, level FROM meter").iterate()) {
      const meter = newMeter(String(found["id"]));
      // A window long over may have been forgotten, and begun again by a clock that was set back.
      if (!isCalendar(meter.per) || meter.end + KEPT_MS < this.#latest) continue;
      const [level, sum] = [BigInt(String(found["level"])), spent.get(meter.id) ?? 0n];
      spent.delete(meter.id);
      if (level !== sum)
        this.#wrong(`/meter/${meter.id}`, `Counted ${level}, but the entries sum up to ${sum}.`);
    }
    // A window that is not over is not forgotten by itself.
    const now = Math.max(this.#latest, Date.now());
    for (const [id, sum] of spent)
      if (sum !== 0n && newMeter(id).end + KEPT_MS >= now)
        this.#wrong(`/meter/${id}`, `It is not there, but the entries sum up to ${sum}.`);
  }

  #lists(): void {
    const newest = this.#db.prepare("SELECT low FROM segment ORDER BY id DESC LIMIT 1");
    const low = Number(newest.get()?.["low"] ?? 0);
    const listed = new Set<string>();
    for (const { attempt } of this.#db.prepare("SELECT attempt FROM open").all()) {
      listed.add(String(attempt));
      if (!this.#open.has(String(attempt)))
        this.#wrong(`/open/${attempt}`, "Listed as open, but settled.");
    }
    for (const [attempt, { seq }] of this.#open)
      if (seq < low && !listed.has(attempt))
        this.#wrong(`/open/${attempt}`, "Not settled, and not listed as open.");
  }
}
