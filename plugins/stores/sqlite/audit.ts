// Whether everything that is told by the entries alone is what they tell: the sums, the list of open calls, and the
// lookups, which are how an entry is found. Entry by entry, in their order.
import type { DatabaseSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";
import {
  isCalendar,
  KEPT_MS,
  type LedgerRow,
  newMeter,
  nth,
  type Taken,
  used,
} from "tollgate/store";
import { chapterOf } from "./mention.ts";
import { createShelf, rowsOf, type Stored } from "./stored.ts";

export interface Audit {
  add(stored: Stored): void;
  problems(): Problem[];
}

export function createAudit(db: DatabaseSync): Audit {
  const open = new Map<string, { seq: number; taken: readonly Taken[] }>();
  const spent = new Map<string, bigint>();
  const problems: Problem[] = [];
  let latest = 0;
  let chapter = -1;
  let mentioned = new Set<string>();
  const counted = { call: 0, done: 0, adjustment: 0, mention: 0 };
  const shelf = createShelf(db);
  const call = db.prepare("SELECT 1 FROM call WHERE attempt = ? AND first = ?");
  const done = db.prepare("SELECT 1 FROM done WHERE reserve = ? AND first = ?");
  const adjustment = db.prepare(
    "SELECT 1 FROM adjustment WHERE attempt = ? AND nth = ? AND seq = ?",
  );
  const mention = db.prepare("SELECT 1 FROM mention WHERE key = ? AND chapter = ?");
  const times = db.prepare("SELECT since, till FROM segment WHERE first = ?");

  const wrong = (path: string, message: string): void => void problems.push({ path, message });
  const count = (id: string, amount: bigint): void =>
    void (isCalendar(newMeter(id).per) && spent.set(id, (spent.get(id) ?? 0n) + amount));

  function settled(row: LedgerRow, first: number): void {
    const reserve = open.get(row.attempt);
    if (!reserve || !open.delete(row.attempt))
      return wrong(`/entry/${row.attempt}`, "A settle without its reserve.");
    counted.done++;
    if (!done.get(reserve.seq, first)) wrong(`/done/${row.attempt}`, "Its settle is not found.");
    for (const [id, amount] of reserve.taken) count(id, used(newMeter(id).unit, amount, row));
  }

  function adjusted(row: LedgerRow, seq: number): void {
    counted.adjustment++;
    if (!adjustment.get(row.attempt, nth(row), seq))
      wrong(`/adjustment/${row.attempt}`, "An adjustment is not found.");
    const reserve = shelf.row(shelf.about(row.attempt)?.reserve ?? 0);
    for (const [id] of reserve?.taken ?? [])
      if (newMeter(id).unit === "nano_usd") count(id, row.costNano ?? 0n);
  }

  function reserved(row: LedgerRow, seq: number, first: number): void {
    counted.call++;
    if (!call.get(row.attempt, first)) wrong(`/call/${row.attempt}`, "Its reserve is not found.");
    open.set(row.attempt, { seq, taken: row.taken });
  }

  function found({ first }: Stored, rows: readonly LedgerRow[]): void {
    const at = rows.map((row) => row.at);
    const said = times.get(first);
    const [since, till] = [Math.min(...at), Math.max(...at)];
    if (said?.["since"] !== since || said["till"] !== till)
      wrong(`/segment/${first}`, "Its times are not those of its entries.");
    if (chapter !== chapterOf(first)) {
      chapter = chapterOf(first);
      mentioned = new Set();
    }
    for (const row of rows) {
      // As the file holds it: half a character is the same one as any other.
      const key = row.key.toWellFormed();
      if (mentioned.has(key)) continue;
      mentioned.add(key);
      counted.mention++;
      if (!mention.get(key, chapter))
        wrong(`/mention/${key}`, `Its entries from ${first} on are not found.`);
    }
  }

  function totals(): void {
    for (const found of db.prepare("SELECT id, level FROM meter").iterate()) {
      const meter = newMeter(String(found["id"]));
      // A window long over may have been forgotten, and begun again by a clock that was set back.
      if (!isCalendar(meter.per) || meter.end + KEPT_MS < latest) continue;
      const [level, sum] = [BigInt(String(found["level"])), spent.get(meter.id) ?? 0n];
      spent.delete(meter.id);
      if (level !== sum)
        wrong(`/meter/${meter.id}`, `Counted ${level}, but the entries sum up to ${sum}.`);
    }
    // A window that is not over is not forgotten by itself.
    const now = Math.max(latest, Date.now());
    for (const [id, sum] of spent)
      if (sum !== 0n && newMeter(id).end + KEPT_MS >= now)
        wrong(`/meter/${id}`, `It is not there, but the entries sum up to ${sum}.`);
    for (const [table, n] of Object.entries(counted)) {
      const there = db.prepare(`SELECT count(*) AS n FROM ${table}`).get()!["n"];
      if (there !== n) wrong(`/${table}`, `There are ${there}, but the entries tell of ${n}.`);
    }
  }

  function lists(): void {
    const low = Number(
      db.prepare("SELECT low FROM segment ORDER BY id DESC LIMIT 1").get()?.["low"] ?? 0,
    );
    const listed = new Set<string>();
    for (const { attempt } of db.prepare("SELECT attempt FROM open").all()) {
      listed.add(String(attempt));
      if (!open.has(String(attempt))) wrong(`/open/${attempt}`, "Listed as open, but settled.");
    }
    for (const [attempt, { seq }] of open)
      if (seq < low && !listed.has(attempt))
        wrong(`/open/${attempt}`, "Not settled, and not listed as open.");
  }

  return {
    add(stored) {
      const rows = rowsOf(stored);
      found(stored, rows);
      rows.forEach((row, i) => {
        latest = Math.max(latest, row.at);
        const seq = stored.first + i;
        if (row.kind === "reserve") reserved(row, seq, stored.first);
        else if (row.kind === "settle") settled(row, stored.first);
        else adjusted(row, seq);
      });
    },
    problems() {
      totals();
      lists();
      return problems;
    },
  };
}
