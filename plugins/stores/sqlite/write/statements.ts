// The SQL statements of the journal, prepared once.
import type { DatabaseSync } from "node:sqlite";

export const prepareStatements = (db: DatabaseSync) => ({
  batch: db.prepare("INSERT INTO batch (first, instance, terms, rows) VALUES (?, ?, ?, ?)"),
  segment: db.prepare(
    "INSERT INTO segment (id, first, last, hash, min_at, max_at, oldest_open) VALUES (?, ?, ?, ?, ?, ?, ?)",
  ),
  // OR FAIL: a failure rolls back the whole batch anyway, so the statement needs no statement
  // journal.
  begin: db.prepare("INSERT OR FAIL INTO call (attempt, first) SELECT value, ? FROM json_each(?)"),
  end: db.prepare(
    "INSERT OR FAIL INTO closed_call (reserve, first) SELECT value, ? FROM json_each(?)",
  ),
  known: db.prepare("SELECT 1 FROM call WHERE attempt = ?"),
  adjustment: db.prepare(
    "INSERT INTO adjustment (attempt, qualifier, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  ),
  list: db.prepare(
    "INSERT INTO open_call (attempt, seq, usage, cost) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT (attempt) DO UPDATE SET usage = excluded.usage, cost = excluded.cost",
  ),
  unlist: db.prepare("DELETE FROM open_call WHERE attempt = ?"),
  meter: db.prepare(
    "INSERT INTO meter (id, level, at, max, notified_level) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE " +
      "SET level = excluded.level, at = excluded.at, max = excluded.max, notified_level = excluded.notified_level",
  ),
  drop: db.prepare("DELETE FROM meter WHERE id = ?"),
  price: db.prepare("INSERT INTO price (hash, price) VALUES (?, ?) ON CONFLICT DO NOTHING"),
  alive: db.prepare(
    "UPDATE instance SET last_heartbeat = ? WHERE epoch = (SELECT max(epoch) FROM instance)",
  ),
});
