// Text is taken out for good: from the table of words, from the records of keys, and from what the disk still has of both. Rows keep
// their hashes, and a note in the chain says how many of them stand for nothing any more.
import type { DatabaseSync } from "node:sqlite";
import type { AccountRecord, ErasureRequest, KeyRecord } from "tollgate/plugin";
import { fromJson } from "tollgate/store";
import type { SqliteJournal } from "../write/journal.ts";
import { hashSet } from "../data/chain-note.ts";
import type { LedgerSession } from "../write/ledger-session.ts";
import {
  ERASED,
  KEY_NAME_LABEL,
  accountOwner,
  toJsonText,
  type NamedRecord,
} from "../data/salted-text.ts";

/** Words of one step. */
export const TEXTS_PER_STEP = 500;

/** Some of those that are there still, behind one of them. */
export interface FoundTexts {
  readonly hashes: readonly string[];
  readonly after: number;
}

export function findTexts(db: DatabaseSync, what: ErasureRequest, after: number): FoundTexts {
  const [where, said] =
    "key" in what
      ? ["key = ?", [toJsonText(what.key)]]
      : "label" in what
        ? ["name = ? AND text = ?", [toJsonText(what.label.name), toJsonText(what.label.value)]]
        : ["hash IN (SELECT value FROM json_each(?))", [JSON.stringify(what.hashes)]];
  const found = db
    .prepare(
      `SELECT id, hash FROM salted_text WHERE ${where} AND text <> ? AND id > ? ORDER BY id LIMIT ${TEXTS_PER_STEP}`,
    )
    .all(...said, toJsonText(ERASED), after);
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

/** What of these was there. */
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
  const said = groupByOwner([...words.values()]);
  for (const record of redactedKeys(db, said)) journal.putKey(record);
  for (const record of redactedAccounts(db, said)) journal.accounts.put(record);
  journal.forgetTexts();
  return gone;
}

type TextsByOwner = ReadonlyMap<string, ReadonlySet<string>>;

/** By whose they are. */
function groupByOwner(words: readonly SaltedText[]): TextsByOwner {
  const of = new Map<string, Set<string>>();
  for (const { key, name, text } of words) {
    const said = of.get(key) ?? new Set();
    of.set(key, said.add(`${name} ${text}`));
  }
  return of;
}

/** Records of accounts that say one of them, without it: a change like any other. */
function* redactedAccounts(db: DatabaseSync, of: TextsByOwner): Generator<AccountRecord, void> {
  for (const row of db.prepare("SELECT record FROM account").all()) {
    const record = fromJson<AccountRecord>(String(row["record"]));
    const said = of.get(toJsonText(accountOwner(record.id)));
    if (said && redactRecord(record, said)) yield { ...record, version: record.version + 1 };
  }
}

/** Records of keys that say one of them, without it. */
function* redactedKeys(db: DatabaseSync, of: TextsByOwner): Generator<KeyRecord, void> {
  for (const row of db.prepare("SELECT record FROM key").all()) {
    const record = fromJson<KeyRecord>(String(row["record"]));
    const said = of.get(toJsonText(record.id));
    if (said && redactRecord(record, said)) yield record;
  }
}

/** Whether there was anything to take out. */
function redactRecord(record: NamedRecord, said: ReadonlySet<string>): boolean {
  let changed = false;
  if (record.name !== undefined && said.has(`${KEY_NAME_LABEL} ${toJsonText(record.name)}`)) {
    record.name = ERASED;
    changed = true;
  }
  const labels = Object.entries(record.labels ?? {}).map(([name, text]) => {
    if (text === undefined || !said.has(`${toJsonText(name)} ${toJsonText(text)}`))
      return [name, text];
    changed = true;
    return [name, ERASED];
  });
  if (changed && labels.length > 0) record.labels = Object.fromEntries(labels);
  return changed;
}

/** The log of writes still has the pages as they were. A reader that holds on to it keeps it until the next time. */
function truncateWal(db: DatabaseSync): void {
  if (db.isTransaction) db.exec("COMMIT");
  db.exec("PRAGMA busy_timeout = 0");
  db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
  db.exec("PRAGMA busy_timeout = 1000");
}
