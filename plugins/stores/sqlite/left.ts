// What an owner left behind, as the next one finds it: meters, and calls that are open.
import type { DatabaseSync } from "node:sqlite";
import { type LedgerRow, type Meter, newMeter, type Progress } from "tollgate/store";
import { rowsOf, STORED, type Stored } from "./stored.ts";

export function begun(db: DatabaseSync, name: string, at: number): number {
  const { lastInsertRowid } = db
    .prepare("INSERT INTO instance (name, pid, started, alive) VALUES (?, ?, ?, ?)")
    .run(name, process.pid, at, at);
  return Number(lastInsertRowid);
}

export function* leftMeters(db: DatabaseSync): Iterable<Meter> {
  for (const m of db.prepare("SELECT id, level, at, max, told FROM meter").iterate())
    yield {
      ...newMeter(m["id"] as string),
      level: BigInt(m["level"] as string),
      at: Number(m["at"]),
      max: BigInt(m["max"] as string),
      told: BigInt(m["told"] as string),
    };
}

export interface Left {
  row: LedgerRow;
  seq: number;
  /** Its commit's first entry. */
  first: number;
  /** Whether `open` has it. */
  listed: boolean;
  heard: Progress | undefined;
}

/** Those that are listed, and those that began since the oldest that is not. In their order. */
export function leftOpen(db: DatabaseSync): Left[] {
  const found = new Map<string, Left>();
  const keep = (left: Left): void => void found.set(left.row.attempt, left);
  const low = db.prepare("SELECT low FROM segment ORDER BY id DESC LIMIT 1").get()?.["low"] ?? 0;
  const since = db.prepare(`SELECT ${STORED} FROM batch WHERE first >= ? ORDER BY first`);
  for (const stored of since.iterate(low) as Iterable<unknown> as Iterable<Stored>) {
    const { first } = stored;
    rowsOf(stored).forEach((row, i) => {
      if (row.kind === "reserve")
        keep({ row, seq: first + i, first, listed: false, heard: undefined });
      if (row.kind === "settle") found.delete(row.attempt);
    });
  }
  const lists = db.prepare(
    `SELECT seq, usage, cost, ${STORED} FROM open JOIN batch ON first = (SELECT max(first) FROM batch WHERE first <= seq)`,
  );
  lists.setReadBigInts(true);
  for (const { seq, usage, cost, first, ...texts } of lists.iterate()) {
    const stored = { ...texts, first: Number(first) } as unknown as Stored;
    const row = rowsOf(stored)[Number(seq) - stored.first]!;
    // Listed for its age alone, it said nothing.
    const silent = usage === "{}" && cost === null;
    const heard = { usage: JSON.parse(String(usage)), costNano: cost as bigint | null };
    keep({
      row,
      seq: Number(seq),
      first: stored.first,
      listed: true,
      heard: silent ? undefined : heard,
    });
  }
  return [...found.values()].sort((a, b) => a.seq - b.seq);
}
