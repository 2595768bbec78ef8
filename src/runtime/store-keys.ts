import { wallClock } from "../lib/time/wall-clock.ts";
import { digestKey, mintKey } from "../lib/api-key.ts";
import { getFault } from "../model/error.ts";
import type { KeyRecord } from "../plugin/store/account.ts";
import type { Store } from "../plugin/store/store.ts";
import type { Services } from "./services.ts";

/**
 * Creates the first key of a store without keys. Returns the secret only if this gateway created
 * the key.
 */
export async function createFirstKey(services: Services): Promise<string | undefined> {
  const there = await listAllKeys(services.store)();
  if (there.some(({ admin }) => admin === undefined)) return undefined;
  const key = mintKey();
  const record = { id: key.id, name: "first", digest: digestKey(key.secret), created: wallClock() };
  const first = await agreeOnFirstKey(record, services.store);
  // The gateway that created the key may have ended before it wrote the record, so each gateway
  // writes it.
  await services.ledgerQueue.writeKey(first).catch((error: unknown) => {
    // The record exists, and an operator has changed it since.
    if (getFault(error)?.code !== "version_conflict") throw error;
  });
  services.keyCache.invalidate();
  if (first.digest !== record.digest) return undefined;
  services.observerSink.reportEvent({
    type: "key",
    at: wallClock(),
    change: "created",
    key: key.id,
  });
  return key.secret;
}

/**
 * Returns the first key, on which all gateways on the store agree. If several gateways start at the
 * same time, only one gateway creates the key, and only that gateway can show it.
 */
async function agreeOnFirstKey(
  record: KeyRecord,
  store: Pick<Store, "getOrCreateShared">,
): Promise<KeyRecord> {
  if (!store.getOrCreateShared) return record;
  const bytes = await store.getOrCreateShared("first-key", async () =>
    Buffer.from(JSON.stringify(record)),
  );
  return JSON.parse(Buffer.from(bytes).toString()) as KeyRecord;
}

// Reads all keys of a store, page by page.

/** Returns a function that lists all keys, admin tokens included. */
export const listAllKeys = (store: Pick<Store, "listKeys">) => async (): Promise<KeyRecord[]> => {
  const found: KeyRecord[] = [];
  let after: string | undefined;
  do {
    const page = await store.listKeys({ after, limit: 500 });
    found.push(...page.items);
    after = page.next ?? undefined;
  } while (after !== undefined);
  return found;
};
