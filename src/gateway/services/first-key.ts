import { wallClock } from "../../lib/wall-clock.ts";
import type { GatewayConfig } from "../../config/types.ts";
import { digest, mint } from "../../lib/key.ts";
import { faultOf } from "../../model/error.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import type { Store } from "../../plugin/store.ts";
import { keysIn } from "../control/world.ts";
import type { Services } from "./services.ts";

/** A store without keys gets its first one, unless the file has keys of its own or lets every client in. */
export async function firstKey(
  config: GatewayConfig,
  services: Services,
): Promise<string | undefined> {
  const auth = config.middleware.find((m) => m.use === "auth")?.options as
    | { anonymous?: boolean; keys?: readonly unknown[] }
    | undefined;
  if (!auth || auth.anonymous || (auth.keys?.length ?? 0) > 0) return undefined;
  const there = await keysIn(services.store)();
  if (there.some(({ admin }) => admin === undefined)) return undefined;
  const key = mint();
  const record = { id: key.id, name: "first", digest: digest(key.secret), created: wallClock() };
  const first = await decided(record, services.store);
  // Whichever instance made it may have ended since: that its record is there is each one's to see to.
  await services.ledger.key(first).catch((error: unknown) => {
    // It is there, and an operator has changed it meanwhile.
    if (faultOf(error)?.code !== "changed_since") throw error;
  });
  services.keys.forget();
  if (first.digest !== record.digest) return undefined;
  services.observing.told({ type: "key", at: wallClock(), change: "made", key: key.id });
  return key.secret;
}

/** Of several gateways that start at once on one store, one makes the key, and it alone can show it. */
async function decided(record: KeyRecord, store: Pick<Store, "shared">): Promise<KeyRecord> {
  if (!store.shared) return record;
  const bytes = await store.shared("first-key", async () => Buffer.from(JSON.stringify(record)));
  return JSON.parse(Buffer.from(bytes).toString()) as KeyRecord;
}
