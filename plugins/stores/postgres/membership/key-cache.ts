// Caches recently used keys for offline mode, so that their clients are still served. When any key
// changes, the whole cache is cleared.
import type { KeyRecord, Store, StoreCommand, StoreEvent } from "tollgate/plugin";
import type { OfflineSettings } from "../offline/offline-mode.ts";
import { failUnreachable } from "../connection/errors.ts";

/** Maximum number of cached keys. The oldest entries are dropped first. */
const MAX_KEYS = 10_000;

export interface KeyCache {
  findKey: Store["findKey"];
  /** Wraps an event listener to observe key changes. */
  wrapListener(listener: (news: StoreEvent) => void): (news: StoreEvent) => void;
  /** Called after this node wrote a batch. */
  onBatchWritten(batch: readonly StoreCommand[]): void;
}

/**
 * @param away Offline settings, with the time that a key is cached. If unset, the gateway has no
 *   offline mode and caches no keys.
 */
export function createKeyCache(
  sql: Store["findKey"],
  node: { readonly isOffline: boolean },
  away: OfflineSettings | undefined,
): KeyCache {
  const known = new Map<string, { readonly record: KeyRecord; readonly until: number }>();
  /**
   * Incremented with each change. Results of queries that began before the last change are not
   * cached.
   */
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
      return failUnreachable(new Error("the key was not used recently"));
    }
    const ageAtStart = age;
    const record = await sql(digest);
    known.delete(digest);
    if (record && ageAtStart === age) known.set(digest, { record, until: now + maxMs });
    if (known.size > MAX_KEYS) known.delete(known.keys().next().value!);
    return record;
  };
  return {
    findKey: away ? (digest) => remembered(digest, away) : sql,
    wrapListener: (listener) => (news) => {
      if (news.type === "keys_changed") forget();
      listener(news);
    },
    onBatchWritten(batch) {
      if (batch.some((c) => c.do === "key")) forget();
    },
  };
}
