// Starts a gateway from gateway.yaml. The config is read first, because everything else depends on
// it. The store then opens in its own thread, while this thread loads the modules for serving
// requests. This file therefore imports no large modules.
import { availableParallelism } from "node:os";
import { problem } from "../config/problems.ts";
import { sortByFileOrder } from "../config/problem-report.ts";
import type { LocatedProblem } from "../config/gateway-config.ts";
import { LifetimeScope, SharedResources } from "../lib/lifetime-scope.ts";
import { assertNotRunning } from "../admin/socket/single-instance.ts";
import type { ContextServices } from "../runtime/services.ts";
import type { GatewayServer } from "./gateway-server.ts";
import { createStateDir } from "../runtime/services/state-dir.ts";
import { TransferableStore } from "../runtime/ledger/transferable-store.ts";
import { DescriptorRegistry } from "./handoff/handoff-protocol.ts";
import { createStartupListener } from "../runtime/http/startup-listener.ts";
import { openStore } from "../runtime/ledger/open-store.ts";
import { logWarnings, readGatewayConfig } from "../runtime/reload/read-config.ts";
import { createPluginPeers } from "../runtime/services/peer-gateways.ts";
import { fail } from "../model/error.ts";
import { findLocalEndpoint } from "../runtime/http/local-endpoint.ts";
import type { GatewayOptions } from "./gateway-options.ts";
import type { Gateway } from "../runtime/gateway-api.ts";

export async function createGateway(
  options: GatewayOptions,
): Promise<Gateway | { problems: readonly LocatedProblem[] }> {
  const loaded = await readGatewayConfig(options);
  const { config } = loaded;
  if (!config) return { problems: loaded.problems };
  const { log } = options;
  logWarnings(log, loaded.problems);
  const refused = (problems: readonly LocatedProblem[]) => ({
    problems: sortByFileOrder([...loaded.problems, ...problems], loaded.sources),
  });
  const size = config.workers === "auto" ? availableParallelism() : config.workers;
  if (size > 1 && options.workerProgram === undefined)
    return refused([loaded.locate("workers", problem.workersUnavailable(config.workers))]);

  const before = options.oldProcess;
  if (before) {
    const { startDryRun } = await import("./dry-run.ts");
    await import("./gateway-server.ts");
    const tried = await startDryRun({ loaded, config, log, mask: options.mask });
    if ("problems" in tried) return refused(tried.problems);
    await tried[Symbol.asyncDispose]();
  }

  const scope = new LifetimeScope();
  const descriptors = scope.own(new DescriptorRegistry());
  let running: GatewayServer | undefined;
  try {
    if (!before) await assertNotRunning(config.stateDir);
    await createStateDir(config.stateDir);
    const estate = await before?.takeStore({ stateDir: config.stateDir, version: options.version });
    const instance = estate?.instanceId ?? crypto.randomUUID();
    const contextServices: ContextServices = {
      log,
      instanceId: instance,
      stateDir: config.stateDir,
      proxy: config.proxy,
      env: options.env,
      shared: new SharedResources(),
      pluginPeers: createPluginPeers(async (id, question, near) =>
        running?.askPeers(id, question, near),
      ),
      localEndpoint: () => findLocalEndpoint(running?.urls ?? [], config.listen),
      stats: async () =>
        (await running?.stats()) ?? fail("unavailable", "The gateway does not serve requests yet."),
    };
    const held = scope.own(
      new TransferableStore((own) =>
        openStore(config, contextServices, own, {
          instance,
          version: options.version,
          hear: (news) => running?.onStoreEvent(news),
        }),
      ),
    );
    const store = held.open();
    // A later await reports the error. Before that, the rejection must not count as unhandled.
    store.catch(() => {});
    // A shared store may become available later than the gateway. An inherited socket queues
    // connections by itself, so it needs no startup listener.
    const waiting =
      options.inheritedSockets?.clients || before
        ? undefined
        : createStartupListener(config.listen, store);
    scope.defer(() => waiting?.close());
    // The import blocks the event loop first. Let the store start its thread before that.
    await new Promise(setImmediate);
    const { GatewayServer } = await import("./gateway-server.ts");
    running = new GatewayServer(options, scope);
    const { ownedSocketPaths = [] } = estate ?? {};
    const handover = {
      transferableStore: held,
      descriptors,
      handedOverSocketPaths: ownedSocketPaths,
      startupListener: waiting,
    };
    const problems = await running.start({
      loaded,
      config,
      contextServices,
      store,
      processCount: size,
      ...handover,
    });
    if (!problems) return running;
    await scope[Symbol.asyncDispose]();
    return refused(problems);
  } catch (error) {
    await scope[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
}
