// Text is taken out for good: from the table of words, from the records of keys, and from what the disk still has of both. Rows keep
// their hashes, and a note in the chain says how many of them stand for nothing any more.
import type { DatabaseSync } from "node:sqlite";
import type { AccountRecord, Erasure, KeyRecord } from "tollgate/plugin";
import { fromJson } from "tollgate/store";
import type { SqliteJournal } from "./journal.ts";
import { sumOf } from "./note.ts";
import type { Session } from "./session.ts";
import { ERASED, KEY_NAME, ownerOf, quoted, type NamedRecord } from "./words.ts";

/** Words of one step. */
export const AT_ONCE = 500;

/** Some of those that are there still, behind one of them. */
export interface FoundWords {
  readonly hashes: readonly string[];
  readonly after: number;
}

export function wordsOf(db: DatabaseSync, what: Erasure, after: number): FoundWords {
  const [where, said] =
    "key" in what
      ? ["key = ?", [quoted(what.key)]]
      : "label" in what
        ? ["name = ? AND text = ?", [quoted(what.label.name), quoted(what.label.value)]]
        : ["hash IN (SELECT value FROM json_each(?))", [JSON.stringify(what.values)]];
  const found = db
    .prepare(
      `SELECT id, hash FROM word WHERE ${where} AND text <> ? AND id > ? ORDER BY id LIMIT ${AT_ONCE}`,
    )
    .all(...said, quoted(ERASED), after);
  return {
    hashes: found.map(({ hash }) => String(hash)),
    after: Number(found.at(-1)?.["id"] ?? after),
  };
}

interface Word {
  readonly key: string;
  readonly name: string;
  readonly text: string;
}

/** What of these was there. */
export function erase(session: Session, hashes: readonly string[], at: number): string[] {
  const { db } = session;
  db.exec("PRAGMA secure_delete = ON");
  try {
    const gone = session.step((_, journal) => takeOut(db, journal, hashes, at));
    if (gone.length > 0) wipe(db);
    return gone;
  } finally {
    db.exec("PRAGMA secure_delete = FAST");
  }
}

function takeOut(
  db: DatabaseSync,
  journal: SqliteJournal,
  hashes: readonly string[],
  at: number,
): string[] {
  const find = db.prepare("SELECT key, name, text FROM word WHERE hash = ? AND text IS NOT NULL");
  const words = new Map<string, Word>();
  for (const its of hashes) {
    const found = find.get(its) as unknown as Word | undefined;
    if (found) words.set(its, found);
  }
  const gone = [...words.keys()];
  if (gone.length === 0) return gone;
  const seq = journal.note(at, { erased: { count: gone.length, sum: sumOf(gone) } });
  const clear = db.prepare(
    "UPDATE word SET salt = NULL, text = NULL, kept = 0, gone = ? WHERE hash = ?",
  );
  for (const its of gone) clear.run(seq, its);
  const said = saidOf([...words.values()]);
  for (const record of renamed(db, said)) journal.key(record);
  for (const record of renamedAccounts(db, said)) journal.accounts.put(record);
  journal.forget();
  return gone;
}

type SaidWords = ReadonlyMap<string, ReadonlySet<string>>;

/** By whose they are. */
function saidOf(words: readonly Word[]): SaidWords {
  const of = new Map<string, Set<string>>();
  for (const { key, name, text } of words) {
    const said = of.get(key) ?? new Set();
    of.set(key, said.add(`${name} ${text}`));
  }
  return of;
}

/** Records of accounts that say one of them, without it: a change like any other. */
function* renamedAccounts(db: DatabaseSync, of: SaidWords): Generator<AccountRecord, void> {
  for (const row of db.prepare("SELECT record FROM account").all()) {
    const record = fromJson<AccountRecord>(String(row["record"]));
    const said = of.get(quoted(ownerOf(record.id)));
    if (said && without(record, said)) yield { ...record, version: record.version + 1 };
  }
}

/** Records of keys that say one of them, without it. */
function* renamed(db: DatabaseSync, of: SaidWords): Generator<KeyRecord, void> {
  for (const row of db.prepare("SELECT record FROM key").all()) {
    const record = fromJson<KeyRecord>(String(row["record"]));
    const said = of.get(quoted(record.id));
    if (said && without(record, said)) yield record;
  }
}

/** Whether there was anything to take out. */
function without(record: NamedRecord, said: ReadonlySet<string>): boolean {
  let changed = false;
  if (record.name !== undefined && said.has(`${KEY_NAME} ${quoted(record.name)}`)) {
    record.name = ERASED;
    changed = true;
  }
  const labels = Object.entries(record.labels ?? {}).map(([name, text]) => {
    if (text === undefined || !said.has(`${quoted(name)} ${quoted(text)}`)) return [name, text];
    changed = true;
    return [name, ERASED];
  });
  if (changed && labels.length > 0) record.labels = Object.fromEntries(labels);
  return changed;
}

/** The log of writes still has the pages as they were. A reader that holds on to it keeps it until the next time. */
function wipe(db: DatabaseSync): void {
  if (db.isTransaction) db.exec("COMMIT");
  db.exec("PRAGMA busy_timeout = 0");
  db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
  db.exec("PRAGMA busy_timeout = 1000");
}
