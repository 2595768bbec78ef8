// Whether the ledger is what was written: the chain of hashes, the sums, and the list of open calls.
// It proves that nobody edited history since a head was noted; it does not stop a process that may write the file.
import type { DatabaseSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";
import { isCalendar } from "../book/calendar.ts";
import { KEPT_MS, newMeter } from "../book/meter.ts";
import { used } from "../book/used.ts";
import type { Row } from "../book/row.ts";
import { COLUMNS, fromStored, link, parse, type Stored } from "./columns.ts";

/** What somebody may note down, to compare with later. */
export interface Head {
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

const TAIL = 100;

export function headOf(db: DatabaseSync): Head {
  const row = db.prepare("SELECT id, last, hash FROM segment ORDER BY id DESC LIMIT 1").get();
  return row
    ? { segment: Number(row["id"]), seq: Number(row["last"]), hash: String(row["hash"]) }
    : { segment: 0, seq: 0, hash: "" };
}

/** At every start, the last commits: damage from a crash would be there. */
export function checkTail(db: DatabaseSync, file: string): void {
  const { segment } = headOf(db);
  for (const problem of links(db, Math.max(1, segment - TAIL + 1)))
    if (problem)
      throw new Error(
        `The ledger ${file} is not as it was written: ${problem.message} Restore a copy of it, or move it away to begin a new one.`,
      );
}

/** Undefined after each commit that was looked at: a moment to do something else. */
export function* links(db: DatabaseSync, from: number): Generator<Problem | undefined, void> {
  const before = db.prepare("SELECT last, hash FROM segment WHERE id = ?");
  const values = db.prepare(
    `SELECT ${COLUMNS.join(", ")} FROM entry WHERE seq BETWEEN ? AND ? ORDER BY seq`,
  );
  values.setReadBigInts(true);
  values.setReturnArrays(true);
  const previous = before.get(from - 1);
  let last = Number(previous?.["last"] ?? 0);
  let hash = String(previous?.["hash"] ?? "");
  let id = from - 1;
  const segments = db.prepare(
    "SELECT id, first, last, hash FROM segment WHERE id >= ? ORDER BY id",
  );
  for (const segment of segments.iterate(from) as Iterable<Record<string, unknown>>) {
    const s = segment as unknown as Segment;
    const path = `/segment/${s.id}`;
    if (s.id !== id + 1) yield { path, message: `Commit ${id + 1} is missing.` };
    if (s.first !== last + 1 || s.last < s.first)
      yield { path, message: `Commit ${s.id} does not follow on entry ${last}.` };
    const rows = values.all(s.first, s.last) as unknown as unknown[][];
    if (rows.length !== s.last - s.first + 1)
      yield {
        path,
        message: `Of the entries ${s.first} to ${s.last} only ${rows.length} are there.`,
      };
    hash = link(hash, rows);
    if (hash !== s.hash)
      yield {
        path,
        message: `The entries ${s.first} to ${s.last} were changed after they were written.`,
      };
    // From here on against what stands there: one change is one problem.
    ({ id, last, hash } = s);
    yield undefined;
  }
  const more = db.prepare("SELECT count(*) AS n FROM entry WHERE seq > ?").get(last)!["n"];
  if (Number(more) > 0)
    yield { path: "/entry", message: `${more} entries after ${last} belong to no commit.` };
}

/** What the meters and the list of open calls must be, told by the entries alone, in their order. */
export function auditor(db: DatabaseSync): { add(row: Row): void; problems(): Problem[] } {
  const open = new Map<string, Row>();
  const spent = new Map<string, bigint>();
  const problems: Problem[] = [];
  let latest = 0;
  const takenBy = db.prepare("SELECT taken FROM entry WHERE attempt = ? AND kind = 'reserve'");
  const count = (id: string, amount: bigint): void =>
    void (isCalendar(newMeter(id).per) && spent.set(id, (spent.get(id) ?? 0n) + amount));

  function settled(row: Row): void {
    const reserve = open.get(row.attempt);
    if (!open.delete(row.attempt))
      problems.push({ path: `/entry/${row.attempt}`, message: "A settle without its reserve." });
    for (const [id, amount] of reserve?.taken ?? [])
      count(id, used(newMeter(id).unit, amount, row));
  }

  function adjusted({ attempt, costNano }: Row): void {
    const taken = parse<[string, string][]>(String(takenBy.get(attempt)?.["taken"] ?? "[]"))!;
    for (const [id] of taken) if (newMeter(id).unit === "nano_usd") count(id, costNano ?? 0n);
  }

  return {
    add(row) {
      latest = Math.max(latest, row.at);
      if (row.kind === "reserve") open.set(row.attempt, row);
      else if (row.kind === "settle") settled(row);
      else adjusted(row);
    },
    problems() {
      for (const found of db.prepare("SELECT id, level FROM meter").iterate()) {
        const meter = newMeter(String(found["id"]));
        // A window long over may have been forgotten, and begun again by a clock that was set back.
        if (!isCalendar(meter.per) || meter.end + KEPT_MS < latest) continue;
        const [level, sum] = [BigInt(String(found["level"])), spent.get(meter.id) ?? 0n];
        if (level !== sum)
          problems.push({
            path: `/meter/${meter.id}`,
            message: `Counted ${level}, but the entries sum up to ${sum}.`,
          });
      }
      for (const { attempt } of db.prepare("SELECT attempt FROM open").all())
        if (!open.delete(String(attempt)))
          problems.push({ path: `/open/${attempt}`, message: "Listed as open, but settled." });
      for (const attempt of open.keys())
        problems.push({
          path: `/open/${attempt}`,
          message: "Not settled, and not listed as open.",
        });
      return problems;
    },
  };
}

export const fromArray = (values: readonly unknown[]): Row =>
  fromStored(Object.fromEntries(COLUMNS.map((column, i) => [column, values[i]])) as Stored);
