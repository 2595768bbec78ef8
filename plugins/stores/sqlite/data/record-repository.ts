// Stores keys and accounts: the record, its hashed form, and the chain link for it.
import type { DatabaseSync } from "node:sqlite";
import type { AccountRecord, KeyRecord } from "tollgate/plugin";
import { type AccountRepository, keyCursor, toJson } from "tollgate/store";
import { createRecordChain } from "./record-chain.ts";
import { createLookups } from "./lookups.ts";
import { accountOwner, type SaltedTexts } from "./salted-text.ts";

export interface RecordRepository extends AccountRepository {
  putKey(record: KeyRecord): void;
  getKey(digest: string): KeyRecord | undefined;
}

export function createRecordRepository(db: DatabaseSync, words: SaltedTexts): RecordRepository {
  const key = db.prepare(
    "INSERT OR REPLACE INTO key (digest, sort_key, record, hashed_record) VALUES (?, ?, ?, ?)",
  );
  const account = db.prepare(
    "INSERT OR REPLACE INTO account (id, record, hashed_record) VALUES (?, ?, ?)",
  );
  const link = createRecordChain(db);
  const lookups = createLookups(db);
  return {
    get: lookups.findAccount,
    getKey: lookups.findKey,
    putKey(record) {
      const hashedRecord = words.hashRecord(record);
      key.run(record.digest, keyCursor(record), toJson(record), hashedRecord);
      link(record.digest, hashedRecord);
    },
    put(record: AccountRecord) {
      const owner = accountOwner(record.id);
      const hashedRecord = words.hashRecord({ ...record, id: owner });
      account.run(record.id, toJson(record), hashedRecord);
      link(owner, hashedRecord);
    },
  };
}
