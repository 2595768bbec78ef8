// Creates a store without opening it, so that it can restore a backup or read an archive.
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import { LifetimeScope, SharedResources } from "../../lib/lifetime-scope.ts";
import { fail } from "../../model/error.ts";
import type { Store } from "../../plugin/store/store.ts";
import { createPluginPeers } from "../../runtime/services/plugin-peers.ts";
import type { ContextServices } from "../../runtime/services.ts";
import { setUpStore } from "../../runtime/ledger/open-store.ts";

/** Returns the store with its scope, which closes it. */
export async function createClosedStore(
  config: Pick<GatewayConfig, "store" | "file" | "stateDir">,
  log: Log,
): Promise<{ store: Store; context: ContextServices; scope: LifetimeScope } & AsyncDisposable> {
  const scope = new LifetimeScope();
  const context: ContextServices = {
    log,
    shared: new SharedResources(),
    pluginPeers: createPluginPeers(),
    localEndpoint: () => fail("unavailable", "No gateway is running."),
    stats: async () => fail("unavailable", "No gateway is running."),
    stateDir: config.stateDir,
    env: process.env,
  };
  const store = await setUpStore(config, context, scope);
  return { store, context, scope, [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose]() };
}
