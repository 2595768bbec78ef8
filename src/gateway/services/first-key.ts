import type { GatewayConfig } from "../../config/types.ts";
import { digest, mint } from "../../lib/key.ts";
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
  const { items } = await services.store.keys({ limit: 1 });
  if (items.length > 0) return undefined;
  const key = mint();
  await services.ledger.key({
    id: key.id,
    name: "first",
    digest: digest(key.secret),
    created: Date.now(),
  });
  services.keys.forget();
  services.observing.told({ type: "key", at: Date.now(), change: "made", key: key.id });
  return key.secret;
}
