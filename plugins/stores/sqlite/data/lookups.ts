// Short reads: a single row, or a page of keys. They run on the writer's connection, where they
// take microseconds. A separate thread would need about 12 MB in every gateway.
import type { DatabaseSync } from "node:sqlite";
import type { AccountRecord, KeyRecord, ResultPage, PageRequest, Price } from "tollgate/plugin";
import { fromJson, keyCursor, toPage, pageSize } from "tollgate/store";

export interface Lookups {
  findKey(digest: string): KeyRecord | undefined;
  findPrice(hash: string): Price | undefined;
  listKeys(page?: PageRequest): ResultPage<KeyRecord>;
  findAccount(id: string): AccountRecord | undefined;
  listAccounts(page?: PageRequest): ResultPage<AccountRecord>;
}

export function createLookups(db: DatabaseSync): Lookups {
  const key = db.prepare("SELECT record FROM key WHERE digest = ?");
  const keys = db.prepare("SELECT record FROM key WHERE sort_key > ? ORDER BY sort_key LIMIT ?");
  const account = db.prepare("SELECT record FROM account WHERE id = ?");
  const accounts = db.prepare("SELECT record FROM account WHERE id > ? ORDER BY id LIMIT ?");
  const price = db.prepare("SELECT price FROM price WHERE hash = ?");
  return {
    findKey(digest) {
      const found = key.get(digest);
      return found && fromJson<KeyRecord>(found["record"] as string);
    },
    findPrice(hash) {
      const found = price.get(hash);
      return found && fromJson<Price>(found["price"] as string);
    },
    findAccount(id) {
      const found = account.get(id);
      return found && fromJson<AccountRecord>(found["record"] as string);
    },
    listAccounts(page) {
      const size = pageSize(page);
      const found = accounts.all(page?.after ?? "", size + 1);
      return toPage(
        found.map((row) => fromJson<AccountRecord>(row["record"] as string)),
        size,
        ({ id }) => id,
      );
    },
    listKeys(page) {
      const size = pageSize(page);
      const found = keys.all(page?.after ?? "", size + 1);
      return toPage(
        found.map((row) => fromJson<KeyRecord>(row["record"] as string)),
        size,
        keyCursor,
      );
    },
  };
}
