// Keys that were asked for of late, for when the database is away: a client whose key was there a moment ago is not turned away for it. What is heard
// of a change of any key takes all of them away.
import type { KeyRecord, Store, StoreCommand, StoreEvent } from "tollgate/plugin";
import type { OfflineSettings } from "../offline/budget-lease-queries.ts";
import { failUnreachable } from "../connection/errors.ts";

/** The oldest go first. */
const MAX_KEYS = 10_000;

export interface KeyCache {
  findKey: Store["findKey"];
  /** News passes by. */
  wrapListener(told: (news: StoreEvent) => void): (news: StoreEvent) => void;
  /** This batch was written here. */
  onBatchWritten(batch: readonly StoreCommand[]): void;
}

/** `away`: how long a key is remembered; undefined: a gateway that does not go on alone remembers none. */
export function createKeyCache(
  sql: Store["findKey"],
  node: { readonly isOffline: boolean },
  away: OfflineSettings | undefined,
): KeyCache {
  const known = new Map<string, { readonly record: KeyRecord; readonly until: number }>();
  /** Answers to what was asked before the last change are not remembered. */
  let age = 0;
  const forget = (): void => {
    age++;
    known.clear();
  };
  const remembered = async (
    digest: string,
    { maxMs }: OfflineSettings,
  ): Promise<KeyRecord | undefined> => {
    const now = performance.now();
    if (node.isOffline) {
      const found = known.get(digest);
      if (found && found.until > now) return found.record;
      return failUnreachable(new Error("the key was not asked for of late"));
    }
    const asked = age;
    const record = await sql(digest);
    known.delete(digest);
    if (record && asked === age) known.set(digest, { record, until: now + maxMs });
    if (known.size > MAX_KEYS) known.delete(known.keys().next().value!);
    return record;
  };
  return {
    findKey: away ? (digest) => remembered(digest, away) : sql,
    wrapListener: (told) => (news) => {
      if (news.type === "keys_changed") forget();
      told(news);
    },
    onBatchWritten(batch) {
      if (batch.some((c) => c.do === "key")) forget();
    },
  };
}
