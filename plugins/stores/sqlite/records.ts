// Keys and accounts as the file has them: the record itself, how the chain says it, and the link that says so.
import type { DatabaseSync } from "node:sqlite";
import type { AccountRecord, KeyRecord } from "tollgate/plugin";
import { type AccountShelf, keyCursor, toJson } from "tollgate/store";
import { createKeyring } from "./keyring.ts";
import { createLookups } from "./lookups.ts";
import { ownerOf, type Words } from "./words.ts";

export interface KeptRecords extends AccountShelf {
  key(record: KeyRecord): void;
  keyOf(digest: string): KeyRecord | undefined;
}

export function createRecords(db: DatabaseSync, words: Words): KeptRecords {
  const key = db.prepare(
    "INSERT OR REPLACE INTO key (digest, place, record, said) VALUES (?, ?, ?, ?)",
  );
  const account = db.prepare("INSERT OR REPLACE INTO account (id, record, said) VALUES (?, ?, ?)");
  const link = createKeyring(db);
  const lookups = createLookups(db);
  return {
    get: lookups.account,
    keyOf: lookups.key,
    key(record) {
      const said = words.record(record);
      key.run(record.digest, keyCursor(record), toJson(record), said);
      link(record.digest, said);
    },
    put(record: AccountRecord) {
      const owner = ownerOf(record.id);
      const said = words.record({ ...record, id: owner });
      account.run(record.id, toJson(record), said);
      link(owner, said);
    },
  };
}
