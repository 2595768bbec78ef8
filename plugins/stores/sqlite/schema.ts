// The database file, version by version. A migration is never changed once it was released: add the next one.
import type { DatabaseSync } from "node:sqlite";
import { VIEW } from "./view.ts";

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
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE instance (
    epoch INTEGER PRIMARY KEY, name TEXT NOT NULL, pid INTEGER NOT NULL,
    started INTEGER NOT NULL, alive INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE batch (
    first INTEGER PRIMARY KEY, instance TEXT NOT NULL, terms TEXT NOT NULL, rows TEXT NOT NULL
  ) STRICT;
  CREATE TABLE segment (
    id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, hash TEXT NOT NULL,
    since INTEGER NOT NULL, till INTEGER NOT NULL, low INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX by_time ON segment (till, since, first);

  CREATE TABLE call (attempt TEXT PRIMARY KEY, first INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE done (reserve INTEGER PRIMARY KEY, first INTEGER NOT NULL) STRICT;
  CREATE TABLE adjustment (
    attempt TEXT NOT NULL, nth TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (attempt, nth)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE mention (
    key TEXT NOT NULL, chapter INTEGER NOT NULL, PRIMARY KEY (key, chapter)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE open (
    attempt TEXT PRIMARY KEY, seq INTEGER NOT NULL, usage TEXT NOT NULL, cost INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE meter (id TEXT PRIMARY KEY, level TEXT NOT NULL, at INTEGER NOT NULL, max TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE key (digest TEXT PRIMARY KEY, place TEXT NOT NULL UNIQUE, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE keyed (n INTEGER PRIMARY KEY, digest TEXT NOT NULL, sum TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
  CREATE TABLE price (hash TEXT PRIMARY KEY, price TEXT NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TRIGGER segment_stays BEFORE UPDATE ON segment BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER segment_remains BEFORE DELETE ON segment BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER batch_stays BEFORE UPDATE ON batch BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER batch_remains BEFORE DELETE ON batch BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER keyed_stays BEFORE UPDATE ON keyed BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER keyed_remains BEFORE DELETE ON keyed BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  ${VIEW}
  `,
  // Its rows have an account.
  `DROP VIEW entry; ${VIEW}`,
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
      db.exec(MIGRATIONS[next]!);
      db.exec(`PRAGMA user_version = ${next + 1}`);
      db.exec("COMMIT");
    } catch (error) {
      // A full disk has taken it back already, and is what has to be told.
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }
}
