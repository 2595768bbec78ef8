// Permanently erases text: from the table of texts, from key and account records, and from the
// remains on disk. Rows keep their hashes. A note in the chain records the number of hashes that no
// longer have a text.
import type { DatabaseSync } from "node:sqlite";
import type { AccountRecord, ErasureRequest, KeyRecord } from "tollgate/plugin";
import { fromJson, hashSet, ERASED, toJsonText, redactRecord } from "tollgate/store";
import type { SqliteJournal } from "../write/journal.ts";
import type { LedgerSession } from "../write/ledger-session.ts";
import { accountOwner, type NamedRecord } from "../data/salted-text.ts";

/** Number of texts per step. */
export const TEXTS_PER_STEP = 500;

/** A page of texts that still exist. `after` is the position for the next page. */
export interface FoundTexts {
  readonly hashes: readonly string[];
  readonly after: number;
}

export function findTexts(db: DatabaseSync, what: ErasureRequest, after: number): FoundTexts {
  const [where, values] =
    "key" in what
      ? ["key = ?", [toJsonText(what.key)]]
      : "account" in what
        ? ["key = ?", [toJsonText(accountOwner(what.account))]]
        : "label" in what
          ? ["name = ? AND text = ?", [toJsonText(what.label.name), toJsonText(what.label.value)]]
          : ["hash IN (SELECT value FROM json_each(?))", [JSON.stringify(what.hashes)]];
  const found = db
    .prepare(
      `SELECT id, hash FROM salted_text WHERE ${where} AND text <> ? AND id > ? ORDER BY id LIMIT ${TEXTS_PER_STEP}`,
    )
    .all(...values, toJsonText(ERASED), after);
  return {
    hashes: found.map(({ hash }) => String(hash)),
    after: Number(found.at(-1)?.["id"] ?? after),
  };
}

interface SaltedText {
  readonly key: string;
  readonly name: string;
  readonly text: string;
}

/** Erases texts and returns the hashes of those that existed. */
export function erase(session: LedgerSession, hashes: readonly string[], at: number): string[] {
  const { db } = session;
  db.exec("PRAGMA secure_delete = ON");
  try {
    const gone = session.runStep((_, journal) => eraseTexts(db, journal, hashes, at));
    if (gone.length > 0) truncateWal(db);
    return gone;
  } finally {
    db.exec("PRAGMA secure_delete = FAST");
  }
}

function eraseTexts(
  db: DatabaseSync,
  journal: SqliteJournal,
  hashes: readonly string[],
  at: number,
): string[] {
  const find = db.prepare(
    "SELECT key, name, text FROM salted_text WHERE hash = ? AND text IS NOT NULL",
  );
  const words = new Map<string, SaltedText>();
  for (const its of hashes) {
    const found = find.get(its) as unknown as SaltedText | undefined;
    if (found) words.set(its, found);
  }
  const gone = [...words.keys()];
  if (gone.length === 0) return gone;
  const seq = journal.appendNote(at, { erased: { count: gone.length, hash: hashSet(gone) } });
  const clear = db.prepare(
    "UPDATE salted_text SET salt = NULL, text = NULL, retained = 0, erased_at_seq = ? WHERE hash = ?",
  );
  for (const its of gone) clear.run(seq, its);
  const textsByOwner = groupByOwner([...words.values()]);
  for (const record of redactedRecords<KeyRecord>(db, "key", textsByOwner, ({ id }) => id))
    journal.putKey(record);
  // The change increments the version of an account, like any other change.
  for (const record of redactedRecords<AccountRecord>(db, "account", textsByOwner, ({ id }) =>
    accountOwner(id),
  ))
    journal.accounts.put({ ...record, version: record.version + 1 });
  journal.forgetTexts();
  return gone;
}

type TextsByOwner = ReadonlyMap<string, ReadonlySet<string>>;

/** Groups texts by the ID of their owner. */
function groupByOwner(words: readonly SaltedText[]): TextsByOwner {
  const of = new Map<string, Set<string>>();
  for (const { key, name, text } of words) {
    const ownTexts = of.get(key) ?? new Set();
    of.set(key, ownTexts.add(`${name} ${text}`));
  }
  return of;
}

/** Yields the records of a table without these texts. */
function* redactedRecords<R extends NamedRecord>(
  db: DatabaseSync,
  table: "key" | "account",
  of: TextsByOwner,
  ownerOf: (record: R) => string,
): Generator<R, void> {
  for (const row of db.prepare(`SELECT record FROM ${table}`).all()) {
    const record = fromJson<R>(String(row["record"]));
    const ownTexts = of.get(toJsonText(ownerOf(record)));
    const redacted =
      ownTexts &&
      redactRecord(record, (name, text) => ownTexts.has(`${toJsonText(name)} ${toJsonText(text)}`));
    if (redacted) yield redacted;
  }
}

/**
 * Truncates the WAL, which still contains the old pages. If a reader prevents this, the WAL is
 * truncated next time.
 */
function truncateWal(db: DatabaseSync): void {
  if (db.isTransaction) db.exec("COMMIT");
  db.exec("PRAGMA busy_timeout = 0");
  db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
  db.exec("PRAGMA busy_timeout = 1000");
}
