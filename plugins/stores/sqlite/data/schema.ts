// The database file, version by version. A migration is never changed once it was released: add the next one.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { ENTRY_VIEW_SQL } from "./entry-view.ts";

/** A row goes when sums stand for it, and not before. */
const NOT_COMPACTED = "WHEN OLD.first > coalesce((SELECT last FROM checkpoint), 0)";

/**
 * batch        the ledger, append-only: the entries of one commit in one row, and once what they have in common
 * segment      a chain of hashes over the batches, one link a commit; when its entries were (min_at, max_at); and oldest_open: no
 *              entry before it is a reserve without its settle, but for what `open_call` lists
 * call         which batch has an attempt's reserve
 * closed_call  which batch has its settle, by the reserve's seq
 * adjustment   each one once, and where
 * key_index    which chapters of the ledger have entries of a key
 * open_call    calls that are open for long, or of which something was heard, and what it was
 * record_link  a chain of hashes over what commands wrote of keys, and of accounts
 * salted_text  what the hashes in terms and in keys' records stand for. Rows are added at its end and stay where they are, and no index
 *              has text: SQLite copies what it moves, and of what it has copied a page keeps a trace
 * text_chapter the newest chapter that has a hash of `salted_text`
 * checkpoint   what stands for rows that were pruned: where the chain goes on, and what budgets had counted
 * checkpoint_rollup  what those rows come to, by quarters of an hour, each with a hash over it and all before
 * retained_reserve   reserves from among them, of calls that rows after them speak of
 * audit        what operators have done, and how it ended: each is a note in the chain too, and stays when that is pruned
 * meter        what limits and budgets have counted, as of the last entry
 * entry        all of it to read, an entry a row
 *
 * Two rows of many columns with four indexes for every call were four fifths of what a call cost the writer.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE instance (
    epoch INTEGER PRIMARY KEY, name TEXT NOT NULL, pid INTEGER NOT NULL,
    started INTEGER NOT NULL, last_heartbeat INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE batch (
    first INTEGER PRIMARY KEY, instance TEXT NOT NULL, terms TEXT NOT NULL, rows TEXT NOT NULL
  ) STRICT;
  CREATE TABLE segment (
    id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, hash TEXT NOT NULL,
    min_at INTEGER NOT NULL, max_at INTEGER NOT NULL, oldest_open INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX by_time ON segment (max_at, min_at, first);

  CREATE TABLE call (attempt TEXT PRIMARY KEY, first INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE closed_call (reserve INTEGER PRIMARY KEY, first INTEGER NOT NULL) STRICT;
  CREATE TABLE adjustment (
    attempt TEXT NOT NULL, qualifier TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (attempt, qualifier)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE key_index (
    key TEXT NOT NULL, chapter INTEGER NOT NULL, PRIMARY KEY (key, chapter)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE open_call (
    attempt TEXT PRIMARY KEY, seq INTEGER NOT NULL, usage TEXT NOT NULL, cost INTEGER
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE salted_text (
    id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, key TEXT NOT NULL, name TEXT NOT NULL,
    salt TEXT, text TEXT, retained INTEGER NOT NULL, erased_at_seq INTEGER
  ) STRICT;
  CREATE TABLE text_chapter (hash TEXT PRIMARY KEY, chapter INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE checkpoint (
    id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL, rollups INTEGER NOT NULL, text TEXT NOT NULL
  ) STRICT;
  CREATE TABLE checkpoint_rollup (n INTEGER PRIMARY KEY, quarter INTEGER NOT NULL, text TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
  CREATE INDEX by_quarter ON checkpoint_rollup (quarter);
  CREATE TABLE retained_reserve (
    seq INTEGER PRIMARY KEY, attempt TEXT NOT NULL, is_settled INTEGER NOT NULL,
    instance TEXT NOT NULL, terms TEXT NOT NULL, rows TEXT NOT NULL
  ) STRICT;

  CREATE TABLE meter (id TEXT PRIMARY KEY, level TEXT NOT NULL, at INTEGER NOT NULL, max TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE key (digest TEXT PRIMARY KEY, sort_key TEXT NOT NULL UNIQUE, record TEXT NOT NULL, hashed_record TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE record_link (n INTEGER PRIMARY KEY, digest TEXT NOT NULL, sum TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
  CREATE TABLE price (hash TEXT PRIMARY KEY, price TEXT NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TRIGGER segment_no_update BEFORE UPDATE ON segment BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER segment_no_delete BEFORE DELETE ON segment ${NOT_COMPACTED} BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER batch_no_update BEFORE UPDATE ON batch BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER batch_no_delete BEFORE DELETE ON batch ${NOT_COMPACTED} BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER checkpoint_rollup_no_update BEFORE UPDATE ON checkpoint_rollup BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER checkpoint_rollup_no_delete BEFORE DELETE ON checkpoint_rollup WHEN OLD.n <= coalesce((SELECT rollups FROM checkpoint), 0) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER record_link_no_update BEFORE UPDATE ON record_link BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER record_link_no_delete BEFORE DELETE ON record_link BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  ${ENTRY_VIEW_SQL}
  `,
  `
  CREATE TABLE account (id TEXT PRIMARY KEY, record TEXT NOT NULL, hashed_record TEXT NOT NULL) STRICT, WITHOUT ROWID;
  `,
  // Up to where it was told that a limit was reached. What had been counted before is no news.
  `
  ALTER TABLE meter ADD COLUMN notified_level TEXT NOT NULL DEFAULT '0';
  UPDATE meter SET notified_level = level;
  `,
  `
  CREATE TABLE audit (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, is_end INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
  CREATE INDEX audit_by_id ON audit (id, is_end);
  CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  `,
];

/** The version that the first migration makes: what was written before has no way to here. */
const OLDEST_VERSION = 3;
const LATEST_VERSION = OLDEST_VERSION + MIGRATIONS.length - 1;

export function migrate(db: DatabaseSync, file: string): void {
  const version = checkVersion(db, file);
  for (let next = Math.max(version + 1, OLDEST_VERSION); next <= LATEST_VERSION; next++) {
    db.exec("BEGIN EXCLUSIVE");
    try {
      db.exec(MIGRATIONS[next - OLDEST_VERSION]!);
      db.exec(`PRAGMA user_version = ${next}`);
      db.exec("COMMIT");
    } catch (error) {
      // A full disk has taken it back already, and is what has to be told.
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }
}

/** What the next opening of this file does before all else; undefined: nothing. */
export function pendingMigration(
  file: string,
): { readonly from: number; readonly to: number; readonly bytes: number } | undefined {
  const { version: from, bytes } = readFileHeader(file);
  return from < OLDEST_VERSION || from >= LATEST_VERSION
    ? undefined
    : { from, to: LATEST_VERSION, bytes };
}

/** Before anything of it is opened, which would write into it. What a log beside it says is read once it is open. */
export const rejectNewer = (file: string): unknown =>
  assertKnownVersion(readFileHeader(file).version, file);

/** 0: there is none, or nothing in it. */
function readFileHeader(file: string): { readonly version: number; readonly bytes: number } {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch {
    return { version: 0, bytes: 0 };
  }
  try {
    const head = Buffer.alloc(HEADER_BYTES);
    readSync(fd, head, 0, HEADER_BYTES, 0);
    // What is no database at all is refused where it is opened.
    const version =
      head.toString("latin1", 0, MAGIC.length) === MAGIC ? head.readUInt32BE(VERSION_OFFSET) : 0;
    return { version, bytes: fstatSync(fd).size };
  } finally {
    closeSync(fd);
  }
}

/** Of SQLite's file format: its first bytes, and where `user_version` stands in the head. */
const MAGIC = "SQLite format 3\0";
const VERSION_OFFSET = 60;
const HEADER_BYTES = 100;

/** Throws for what cannot be read here. */
export function checkVersion(db: DatabaseSync, file: string): number {
  const { user_version: version } = db.prepare("PRAGMA user_version").get() as {
    user_version: number;
  };
  return assertKnownVersion(version, file);
}

function assertKnownVersion(version: number, file: string): number {
  if (version > LATEST_VERSION)
    throw new Error(
      `${file} was written by a newer Tollgate (ledger version ${version}, this one knows ${LATEST_VERSION}). ` +
        "Run that version, or move the file away to begin a new ledger.",
    );
  if (version > 0 && version < OLDEST_VERSION)
    throw new Error(
      `${file} was written by a Tollgate from before its first release (ledger version ${version}, this one reads ${OLDEST_VERSION} and later). ` +
        "Run that version to export it, and move the file away to begin a new ledger.",
    );
  return version;
}
