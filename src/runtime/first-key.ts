import { wallClock } from "../lib/time/wall-clock.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { digestKey, mintKey } from "../lib/api-key.ts";
import { getFault } from "../model/error.ts";
import type { KeyRecord } from "../plugin/store/key.ts";
import type { Store } from "../plugin/store/store.ts";
import { listAllKeys } from "./access/list-all-keys.ts";
import type { Services } from "./services.ts";

/** A store without keys gets its first one, unless the file has keys of its own or lets every client in. */
export async function createFirstKey(
  config: GatewayConfig,
  services: Services,
): Promise<string | undefined> {
  const auth = config.middleware.find((m) => m.use === "auth")?.options as
    | { anonymous?: boolean; keys?: readonly unknown[] }
    | undefined;
  if (!auth || auth.anonymous || (auth.keys?.length ?? 0) > 0) return undefined;
  const there = await listAllKeys(services.store)();
  if (there.some(({ admin }) => admin === undefined)) return undefined;
  const key = mintKey();
  const record = { id: key.id, name: "first", digest: digestKey(key.secret), created: wallClock() };
  const first = await agreeOnFirstKey(record, services.store);
  // Whichever instance made it may have ended since: that its record is there is each one's to see to.
  await services.ledgerQueue.writeKey(first).catch((error: unknown) => {
    // It is there, and an operator has changed it meanwhile.
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

/** Of several gateways that start at once on one store, one makes the key, and it alone can show it. */
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
