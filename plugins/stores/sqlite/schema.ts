// The database file, version by version. A migration is never changed once it was released: add the next one.
import type { DatabaseSync } from "node:sqlite";
import { carry } from "./carry.ts";
import { beginKeyring } from "./keyring.ts";

/**
 * batch       the ledger, append-only: the entries of one commit in one row, and once what they have in common
 * segment     a chain of hashes over the batches, one link a commit; when its entries were (since, till); and low: no
 *             entry before it is a reserve without its settle, but for what `open` lists
 * call, done  which batch has an attempt's reserve, which one has its settle (by the reserve's seq)
 * adjustment  each one once, and where
 * mention     which chapters of the ledger have entries of a key
 * open        calls that are open for long, or of which something was heard, and what it was
 * keyed       a chain of hashes over what commands wrote of keys
 * meter       what limits and budgets have counted, as of the last entry
 * entry       all of it to read, an entry a row
 *
 * Two rows of many columns with four indexes for every call were four fifths of what a call cost the writer.
 */
export const MIGRATIONS: readonly (string | ((db: DatabaseSync, file: string) => void))[] = [
  `
  CREATE TABLE instance (
    epoch INTEGER PRIMARY KEY, name TEXT NOT NULL, pid INTEGER NOT NULL,
    started INTEGER NOT NULL, alive INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE entry (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('reserve', 'settle', 'adjust')),
    attempt TEXT NOT NULL, nth TEXT NOT NULL,
    request TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, instance TEXT NOT NULL,
    key TEXT NOT NULL,
    provider TEXT NOT NULL, model TEXT NOT NULL, protocol TEXT, credential TEXT NOT NULL,
    privacy TEXT NOT NULL, labels TEXT NOT NULL, price TEXT, asked TEXT, taken TEXT NOT NULL,
    hold INTEGER, usage TEXT NOT NULL, cost INTEGER,
    state TEXT NOT NULL CHECK (state IN ('open', 'exact', 'estimated', 'unpriced', 'void')),
    outcome TEXT NOT NULL, upstream_id TEXT, upstream_cost INTEGER, parts TEXT, finish TEXT, ms TEXT,
    reason TEXT, actor TEXT
  ) STRICT;
  CREATE UNIQUE INDEX once ON entry (attempt, kind, nth);
  CREATE INDEX by_key ON entry (key, at);
  CREATE INDEX by_time ON entry (at);
  CREATE INDEX by_upstream ON entry (upstream_id) WHERE upstream_id IS NOT NULL;

  CREATE TABLE segment (
    id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, hash TEXT NOT NULL
  ) STRICT;

  CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER entry_remains BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER segment_stays BEFORE UPDATE ON segment BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER segment_remains BEFORE DELETE ON segment BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

  CREATE TABLE open (
    attempt TEXT PRIMARY KEY, seq INTEGER NOT NULL, usage TEXT NOT NULL, cost INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE meter (id TEXT PRIMARY KEY, level TEXT NOT NULL, at INTEGER NOT NULL, max TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE key (digest TEXT PRIMARY KEY, place TEXT NOT NULL UNIQUE, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE price (hash TEXT PRIMARY KEY, price TEXT NOT NULL) STRICT, WITHOUT ROWID;
  `,
  carry,
  beginKeyring,
];

export function migrate(db: DatabaseSync, file: string): void {
  const { user_version: version } = db.prepare("PRAGMA user_version").get() as {
    user_version: number;
  };
  if (version > MIGRATIONS.length)
    throw new Error(
      `${file} was written by a newer Tollgate (ledger version ${version}, this one knows ${MIGRATIONS.length}). ` +
        "Run that version, or move the file away to begin a new ledger.",
    );
  for (let next = version; next < MIGRATIONS.length; next++) {
    db.exec("BEGIN EXCLUSIVE");
    try {
      const migration = MIGRATIONS[next]!;
      if (typeof migration === "string") db.exec(migration);
      else migration(db, file);
      db.exec(`PRAGMA user_version = ${next + 1}`);
      db.exec("COMMIT");
    } catch (error) {
      // A full disk has taken it back already, and is what has to be told.
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }
}
