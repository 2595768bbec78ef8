// The book's journal as statements on an open database. All of them run inside the writer's transaction.
import type { DatabaseSync } from "node:sqlite";
import type { Journal, Open } from "../book/book.ts";
import type { Meter } from "../book/meter.ts";
import { newMeter } from "../book/meter.ts";
import { keyCursor } from "../book/page.ts";
import { COLUMNS, fromStored, link, parse, toValues, type Stored } from "./columns.ts";
import { toJson } from "./tagged.ts";

export interface SqliteJournal extends Journal {
  /** Closes the batch: its meters, and its link in the chain of hashes. */
  seal(changed: Iterable<Meter>, dropped: readonly string[]): void;
  undo(): void;
  done(): void;
  begun(name: string, at: number): number;
  meters(): Iterable<Meter>;
  open(): Iterable<Open & { at: number }>;
}

export function createJournal(db: DatabaseSync): SqliteJournal {
  const read = (sql: string) => {
    const statement = db.prepare(sql);
    statement.setReadBigInts(true);
    return statement;
  };
  const marks = COLUMNS.map(() => "?").join(", ");
  const write = db.prepare(
    `INSERT INTO entry (${COLUMNS.join(", ")}) VALUES (${marks}) ON CONFLICT (attempt, kind, nth) DO NOTHING`,
  );
  const find = read("SELECT * FROM entry WHERE attempt = ? AND kind = ? AND nth = ''");
  const opened = db.prepare(
    "INSERT INTO open (attempt, seq, usage, cost) VALUES (?, ?, '{}', NULL)",
  );
  const closed = db.prepare("DELETE FROM open WHERE attempt = ?");
  const heard = db.prepare("UPDATE open SET usage = ?, cost = ? WHERE attempt = ?");
  const meter = db.prepare(
    "INSERT INTO meter (id, level, at, max) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT (id) DO UPDATE SET level = excluded.level, at = excluded.at, max = excluded.max",
  );
  const drop = db.prepare("DELETE FROM meter WHERE id = ?");
  const key = db.prepare("INSERT OR REPLACE INTO key (digest, place, record) VALUES (?, ?, ?)");
  const price = db.prepare("INSERT INTO price (hash, price) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const alive = db.prepare(
    "UPDATE instance SET alive = ? WHERE epoch = (SELECT max(epoch) FROM instance)",
  );
  const segment = db.prepare("INSERT INTO segment (id, first, last, hash) VALUES (?, ?, ?, ?)");

  const newest = db.prepare("SELECT id, last, hash FROM segment ORDER BY id DESC LIMIT 1").get();
  let head = {
    id: Number(newest?.["id"] ?? 0),
    last: Number(newest?.["last"] ?? 0),
    hash: String(newest?.["hash"] ?? ""),
  };
  let sealed = head;
  let rows: unknown[][] = [];

  return {
    write(row) {
      const seq = head.last + rows.length + 1;
      const values = toValues(row, seq);
      if (write.run(...values).changes === 0) return false;
      rows.push(values);
      if (row.kind === "reserve") opened.run(row.attempt, seq);
      if (row.kind === "settle") closed.run(row.attempt);
      return true;
    },
    past(attempt) {
      const reserve = find.get(attempt, "reserve") as Stored | undefined;
      const settle = find.get(attempt, "settle") as Stored | undefined;
      return reserve && { reserve: fromStored(reserve), settle: settle && fromStored(settle) };
    },
    progress: (attempt, usage, costNano) =>
      void heard.run(JSON.stringify(usage), costNano, attempt),
    key: (record) => void key.run(record.digest, keyCursor(record), toJson(record)),
    price: (hash, row) => void price.run(hash, toJson(row)),
    alive: (at) => void alive.run(Math.floor(at)),
    seal(changed, dropped) {
      for (const id of dropped) drop.run(id);
      for (const m of changed) meter.run(m.id, String(m.level), Math.floor(m.at), String(m.max));
      sealed = head;
      if (rows.length === 0) return;
      const last = head.last + rows.length;
      sealed = { id: head.id + 1, last, hash: link(head.hash, rows) };
      segment.run(sealed.id, head.last + 1, last, sealed.hash);
    },
    undo: () => void (rows = []),
    done() {
      head = sealed;
      rows = [];
    },
    begun(name, at) {
      const { lastInsertRowid } = db
        .prepare("INSERT INTO instance (name, pid, started, alive) VALUES (?, ?, ?, ?)")
        .run(name, process.pid, at, at);
      return Number(lastInsertRowid);
    },
    *meters() {
      for (const m of db.prepare("SELECT id, level, at, max FROM meter").iterate())
        yield {
          ...newMeter(m["id"] as string),
          level: BigInt(m["level"] as string),
          at: Number(m["at"]),
          max: BigInt(m["max"] as string),
        };
    },
    *open() {
      const open = read(
        "SELECT e.*, o.usage AS heard, o.cost AS worth FROM open o JOIN entry e ON e.seq = o.seq ORDER BY o.seq",
      );
      for (const found of open.iterate() as Iterable<
        Stored & { heard: string; worth: bigint | null }
      >)
        yield {
          row: fromStored(found),
          usage: parse(found.heard) ?? {},
          costNano: found.worth,
          at: Number(found.at),
        };
    },
  };
}
