// From the first version of the file to the second: a table with a column for everything becomes batches, a commit a row.
// Every value stays as it was, and so does the chain of hashes: whoever noted a head down finds it.
import type { DatabaseSync } from "node:sqlite";
import { COLUMNS, type FirstForm } from "./first-form.ts";
import { chapterOf } from "./mention.ts";
import { VIEW } from "./view.ts";

const NEW = `
  DROP TRIGGER entry_stays;
  DROP TRIGGER entry_remains;
  DROP TRIGGER segment_stays;
  ALTER TABLE entry RENAME TO row;
  ALTER TABLE segment ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE segment ADD COLUMN till INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE segment ADD COLUMN low INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE batch (
    first INTEGER PRIMARY KEY, form INTEGER NOT NULL, instance TEXT NOT NULL, terms TEXT NOT NULL, rows TEXT NOT NULL
  ) STRICT;
  CREATE TABLE call (attempt TEXT PRIMARY KEY, first INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE done (reserve INTEGER PRIMARY KEY, first INTEGER NOT NULL) STRICT;
  CREATE TABLE adjustment (
    attempt TEXT NOT NULL, nth TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (attempt, nth)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE mention (
    key TEXT NOT NULL, chapter INTEGER NOT NULL, PRIMARY KEY (key, chapter)
  ) STRICT, WITHOUT ROWID;
`;

const REST = `
  INSERT INTO done
    SELECT r.seq, (SELECT first FROM batch WHERE first <= s.seq ORDER BY first DESC LIMIT 1)
    FROM row s JOIN row r ON r.attempt = s.attempt AND r.kind = 'reserve' AND r.nth = ''
    WHERE s.kind = 'settle' ORDER BY r.seq;
  INSERT INTO adjustment SELECT attempt, nth, seq FROM row WHERE kind = 'adjust';
  DROP TABLE row;
  UPDATE segment SET low = (SELECT max(last) + 1 FROM segment);
  CREATE INDEX by_time ON segment (till, since, first);
  CREATE TRIGGER segment_stays BEFORE UPDATE ON segment BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER batch_stays BEFORE UPDATE ON batch BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  CREATE TRIGGER batch_remains BEFORE DELETE ON batch BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
  ${VIEW}
`;

const [KIND, ATTEMPT, AT, KEY] = (["kind", "attempt", "at", "key"] as const).map((column) =>
  COLUMNS.indexOf(column),
) as [number, number, number, number];

export function carry(db: DatabaseSync, file: string): void {
  db.exec(NEW);
  const rows = db.prepare(
    `SELECT ${COLUMNS.join(", ")} FROM row WHERE seq BETWEEN ? AND ? ORDER BY seq`,
  );
  rows.setReadBigInts(true);
  rows.setReturnArrays(true);
  const batch = db.prepare("INSERT INTO batch VALUES (?, 1, '', '[]', ?)");
  const times = db.prepare("UPDATE segment SET since = ?, till = ? WHERE id = ?");
  const mention = db.prepare("INSERT OR IGNORE INTO mention VALUES (?, ?)");
  const call = db.prepare("INSERT INTO call VALUES (?, ?)");
  let count = 0;
  for (const { id, first, last } of db.prepare("SELECT id, first, last FROM segment").all()) {
    const found = (rows.all(first!, last!) as unknown as unknown[][]).map((values): FirstForm =>
      values.map((value) => (value === null ? null : String(value))),
    );
    count += found.length;
    batch.run(first!, JSON.stringify(found));
    const at = found.map((values) => Number(values[AT]));
    times.run(Math.min(...at), Math.max(...at), id!);
    for (const values of found) {
      mention.run(values[KEY]!, chapterOf(Number(first)));
      if (values[KIND] === "reserve") call.run(values[ATTEMPT]!, first!);
    }
  }
  const all = db.prepare("SELECT count(*) AS n FROM row").get()!["n"];
  if (count !== all)
    throw new Error(
      `The ledger ${file} is not as it was written: ${Number(all) - count} entries belong to no commit. ` +
        "Restore a copy of it, or move it away to begin a new one.",
    );
  db.exec(REST);
}
