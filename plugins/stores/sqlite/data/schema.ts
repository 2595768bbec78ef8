// The schema of the database file and its migrations. Never change a released migration. Add a new
// migration instead.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { PLACES_PER_ROW } from "tollgate/store";

// Defines the SQL view `entry`, one row per entry, for operators who read the file with other
// tools.

/**
 * Returns the SQL for a field of the terms of a row. Row kinds: `r` is a reserve, `s` a settle, `a`
 * an adjustment.
 */
const termsColumn = (i: number, as = "->>"): string => `b.terms -> (r.value ->> 5) ${as} ${i}`;
const byRowKind = (kinds: { [kind: string]: string }, otherwise: string): string =>
  `CASE r.value ->> 0 ${Object.entries(kinds)
    .map(([kind, is]) => `WHEN '${kind}' THEN ${is}`)
    .join(" ")} ELSE ${otherwise} END`;
const textColumn = (i: number): string => `r.value ->> ${i}`;
const integerColumn = (i: number): string => `CAST(r.value ->> ${i} AS INTEGER)`;
const jsonColumn = (i: number): string => `nullif(r.value -> ${i}, 'null')`;

/** The ID of a meter in an amount `m`, which may contain the place of an earlier amount instead. */
const METER_SQL =
  "CASE json_type(m.value, '$[0]') WHEN 'integer' THEN " +
  `b.rows -> ((m.value ->> 0) / ${PLACES_PER_ROW}) -> 7 -> ((m.value ->> 0) % ${PLACES_PER_ROW}) ->> 0 ` +
  "ELSE m.value ->> 0 END";
const METER_AMOUNTS_SQL = `(SELECT json_group_array(json_array(${METER_SQL}, m.value ->> 1)) FROM json_each(coalesce(${jsonColumn(7)}, '[]')) m)`;

const COLUMNS = {
  seq: "b.first + r.key",
  kind: byRowKind({ r: "'reserve'", s: "'settle'" }, "'adjust'"),
  attempt: textColumn(2),
  request: textColumn(3),
  n: textColumn(4),
  at: textColumn(1),
  instance: "b.instance",
  key: termsColumn(0),
  provider: termsColumn(1),
  model: termsColumn(2),
  protocol: termsColumn(3),
  credential: termsColumn(4),
  privacy: termsColumn(5),
  labels: `(SELECT json_group_object(l.key, coalesce((SELECT w.text ->> '$' FROM salted_text w WHERE w.hash = l.value), 'erased')) FROM json_each(${termsColumn(6, "->")}) l)`,
  account: termsColumn(9),
  job: termsColumn(10),
  price: termsColumn(7),
  client_request: byRowKind({ r: `nullif(${termsColumn(8, "->")}, 'null')` }, "NULL"),
  meter_amounts: byRowKind({ r: METER_AMOUNTS_SQL }, "'[]'"),
  hold: byRowKind({ a: "NULL" }, integerColumn(6)),
  usage: byRowKind({ r: "'{}'", a: jsonColumn(6) }, jsonColumn(10)),
  cost: byRowKind({ r: "NULL", a: integerColumn(7) }, integerColumn(8)),
  state: byRowKind({ r: "'open'", s: textColumn(7) }, "'exact'"),
  outcome: byRowKind({ r: "'open'", s: textColumn(9) }, "'adjusted'"),
  upstream_id: byRowKind({ s: textColumn(11) }, "NULL"),
  upstream_cost: byRowKind({ s: integerColumn(12) }, "NULL"),
  parts: byRowKind({ s: jsonColumn(15) }, "NULL"),
  finish: byRowKind({ s: textColumn(13) }, "NULL"),
  ms: byRowKind({ s: jsonColumn(14) }, "NULL"),
  reason: byRowKind({ a: textColumn(8) }, "NULL"),
  actor: byRowKind({ a: textColumn(9) }, "NULL"),
};

const columns = Object.entries(COLUMNS).map(([column, of]) => `${of} AS ${column}`);

const ENTRY_VIEW_SQL = `
  CREATE VIEW entry AS SELECT ${columns.join(", ")} FROM (
    SELECT seq AS first, instance, terms, rows FROM retained_reserve UNION ALL
    SELECT first, instance, terms, rows FROM batch WHERE first > coalesce((SELECT last FROM checkpoint), 0)
  ) b, json_each(b.rows) r WHERE r.value ->> 0 <> 'n';
  CREATE TRIGGER entry_no_update INSTEAD OF UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER entry_no_delete INSTEAD OF DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
`;

/** Trigger condition: a row cannot be deleted before a checkpoint replaces it. */
const NOT_COMPACTED = "WHEN OLD.first > coalesce((SELECT last FROM checkpoint), 0)";

/**
 * batch        the append-only ledger: one row per commit with its entries; shared terms are stored once
 * segment      hash chain over the batches, one link per commit; min_at and max_at are the time range of
 *              its entries; no reserve before oldest_open is unsettled, except those in `open_call`
 * call         the batch that contains the reserve of an attempt
 * closed_call  the batch that contains the settle, by the sequence number of the reserve
 * adjustment   each adjustment once, with its position
 * key_index    the chapters of the ledger that contain entries of a key
 * open_call    calls that are open for long or reported progress, with that progress
 * record_link  hash chain over the key and account records that commands wrote
 * salted_text  the texts behind the hashes in terms and records. Rows are appended and never moved, and
 *              no index contains text: SQLite copies what it moves, and pages keep traces of the copy
 * text_chapter the newest chapter that contains a hash of `salted_text`
 * checkpoint   replaces compacted rows: where the chain continues, and the usage of budgets at that point
 * checkpoint_rollup  totals of compacted rows per quarter of an hour, each with a hash over it and its
 *                    predecessors
 * retained_reserve   compacted reserves of calls that later rows refer to
 * job          records of jobs, which change, so they are not in the chain; the rows of a job are
 * audit        operator commands and their results; each is also a note in the chain and outlives its
 *              compaction
 * meter        usage of limits and budgets, as of the last entry
 * entry        a view for reading, with one row per entry
 *
 * In an earlier layout, two wide rows with four indexes per call took 80% of the writer's time per
 * call.
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
  // The level up to which threshold events were sent. Existing usage counts as already notified.
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
  // Jobs. The view gets a column for the job of a call.
  `
  CREATE TABLE job (
    id TEXT PRIMARY KEY, cursor TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, account TEXT,
    state TEXT NOT NULL, version INTEGER NOT NULL, due_at INTEGER, record TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX job_by_due ON job (kind, due_at) WHERE due_at IS NOT NULL;
  CREATE UNIQUE INDEX job_by_cursor ON job (cursor);
  CREATE INDEX job_by_account ON job (account, cursor);
  CREATE INDEX job_by_key ON job (key, cursor);
  ALTER TABLE open_call ADD COLUMN line_amounts TEXT;
  DROP VIEW entry;
  ${ENTRY_VIEW_SQL}
  `,
  // A commit contains the ID of each meter once. The view returns it with each amount.
  `
  DROP VIEW entry;
  ${ENTRY_VIEW_SQL}
  `,
];

/** The version that the first migration creates. Older files cannot be migrated. */
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
      // SQLite rolls back automatically when the disk is full. The original error must reach the
      // caller.
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }
}

/** Returns the migration that runs when the file is opened next, or undefined if there is none. */
export function pendingMigration(
  file: string,
): { readonly from: number; readonly to: number; readonly bytes: number } | undefined {
  const { version: from, bytes } = readFileHeader(file);
  return from < OLDEST_VERSION || from >= LATEST_VERSION
    ? undefined
    : { from, to: LATEST_VERSION, bytes };
}

/**
 * Throws if a newer Tollgate wrote the file. Called before the file is opened, because opening
 * writes to it. A version in the WAL file is checked after opening.
 */
export const rejectNewer = (file: string): unknown =>
  assertKnownVersion(readFileHeader(file).version, file);

/**
 * Reads the version and size of a file. The version is 0 if the file is missing, empty, or not a
 * database.
 */
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
    // A file that is not a database is rejected when it is opened.
    const version =
      head.toString("latin1", 0, MAGIC.length) === MAGIC ? head.readUInt32BE(VERSION_OFFSET) : 0;
    return { version, bytes: fstatSync(fd).size };
  } finally {
    closeSync(fd);
  }
}

/** SQLite file format: the magic bytes, and the offset of `user_version` in the header. */
const MAGIC = "SQLite format 3\0";
const VERSION_OFFSET = 60;
const HEADER_BYTES = 100;

/**
 * Returns the version of the database.
 * @throws If this version cannot be read or migrated.
 */
export function checkVersion(db: DatabaseSync, file: string): number {
  const { user_version: version } = db.prepare("PRAGMA user_version").get() as {
    user_version: number;
  };
  return assertKnownVersion(version, file);
}

function assertKnownVersion(version: number, file: string): number {
  if (version > LATEST_VERSION)
    throw new Error(
      `${file} was written by a newer Tollgate (ledger version ${version}; this one supports ${LATEST_VERSION}). Run that version, or move the file away to create a new ledger.`,
    );
  if (version > 0 && version < OLDEST_VERSION)
    throw new Error(
      `${file} was written by a Tollgate version before the first release (ledger version ${version}; this one supports ${OLDEST_VERSION} and later). Export the ledger with that version, then move the file away to create a new ledger.`,
    );
  return version;
}
