// What a request may have to wait for: one row by its name. On the writer's own connection: microseconds there, where a
// thread for it alone would cost every gateway as much memory as a thousand streams.
import type { DatabaseSync } from "node:sqlite";
import type { KeyRecord, Price } from "tollgate/plugin";
import { fromJson } from "./tagged.ts";

export interface Lookups {
  key(digest: string): KeyRecord | undefined;
  price(hash: string): Price | undefined;
}

export function createLookups(db: DatabaseSync): Lookups {
  const key = db.prepare("SELECT record FROM key WHERE digest = ?");
  const price = db.prepare("SELECT price FROM price WHERE hash = ?");
  return {
    key(digest) {
      const found = key.get(digest);
      return found && fromJson<KeyRecord>(found["record"] as string);
    },
    price(hash) {
      const found = price.get(hash);
      return found && fromJson<Price>(found["price"] as string);
    },
  };
}
