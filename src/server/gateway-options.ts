// Options that a gateway is started with, and the state that its startup passes on.
import type { LoadedConfig } from "../config/load-config.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Log } from "../lib/log/log.ts";
import type { SecretMask } from "../lib/log/secret-mask.ts";
import type { PluginKind } from "../plugin/define.ts";
import type { FileTexts } from "../config/source/config-files.ts";
import type { ConfigSource } from "../runtime/reload/read-config.ts";
import type { WorkerGeneration } from "../runtime/workers/worker-protocol.ts";
import type { OldProcess } from "./handoff/old-process.ts";
import type { Store } from "../plugin/store/store.ts";
import type { StartupListener } from "../runtime/http/startup-listener.ts";
import type { TransferableStore } from "../runtime/ledger/transferable-store.ts";
import type { DescriptorRegistry } from "./handoff/handoff-protocol.ts";
import type { ContextServices, Services } from "../runtime/services.ts";
import type { ListRefresher } from "../catalog/list-refresher.ts";
import type { PriceFeed } from "../runtime/services/price-feed.ts";
import type { GenerationSlot } from "../runtime/generation/generation-slot.ts";
import { listUnreachablePlugins } from "../runtime/health/unreachable-plugins.ts";
import { readInstances } from "../runtime/services/fleet.ts";
import type { BuiltGeneration } from "../runtime/generation/build-generation.ts";
import type { FrontendStatus, Gateway, GatewayStatus } from "../runtime/gateway-api.ts";

export interface GatewayOptions extends ConfigSource {
  log: Log;
  mask: SecretMask;
  version: string;
  /**
   * Whether a plugin ships with the program. `config.check` may load such plugins in addition to
   * the mounted plugins. Default: no additional plugins.
   */
  isBuiltin?: (use: string, kind: PluginKind) => boolean;
  /** Whether to reload when a file of the config changes. */
  watchesConfig?: boolean;
  /**
   * Whether an operator stops the gateway at a terminal. In that case, no load balancer has to be
   * notified first.
   */
  isInteractive?: boolean;
  /** Sockets that a service manager opened. They are used instead of the sockets in the config. */
  inheritedSockets?: InheritedSockets;
  /** The gateway that this gateway replaces. */
  oldProcess?: OldProcess;
  /** Program that a worker runs. It must call `work`. If unset, there is one process. */
  workerProgram?: string;
}

/** State that exists when the gateway starts. */
export interface StartOptions {
  loaded: LoadedConfig;
  config: GatewayConfig;
  contextServices: ContextServices;
  store: Promise<Store>;
  processCount: number;
  transferableStore: TransferableStore;
  descriptors: DescriptorRegistry;
  /** Unix sockets that the previous gateway handed over. */
  handedOverSocketPaths: readonly string[];
  /** Listener that is open until the serving port is. */
  startupListener?: StartupListener | undefined;
}

/** File descriptors. Descriptors for clients are in the order of `listen`. */
export interface InheritedSockets {
  readonly clients: readonly number[];
  readonly admin: number | undefined;
}

/** Converts a generation for a worker. Equal texts create equal generations in all processes. */
export const toWorkerGeneration = (
  { configFile, env, overrides = {} }: GatewayOptions,
  number: number,
  texts: FileTexts,
): WorkerGeneration => ({
  generation: number,
  file: configFile,
  configTexts: texts,
  env: { ...env },
  overrides,
});

// Creates the status of a gateway as seen by its own process.

export async function createStatus(
  { url, adminUrl, stateDir }: Pick<Gateway, "url" | "adminUrl" | "stateDir">,
  of: Pick<
    GatewayStatus,
    "version" | "file" | "startedAt" | "urls" | "lastReload" | "lastHotRestart"
  > & {
    readonly services: Services;
    readonly stage: GenerationSlot;
    readonly refresh: ListRefresher;
    readonly priceFeed: PriceFeed;
    /** Status of the previous gateway while it has open requests. */
    readonly before: Promise<GatewayStatus["oldProcess"]> | undefined;
  },
): Promise<GatewayStatus> {
  const { services, stage, refresh, priceFeed, before, ...more } = of;
  const { built, config, loadedAt } = stage.current;
  return {
    ...more,
    pid: process.pid,
    url,
    adminUrl,
    stateDir,
    // The port may be open shortly before its URL is known.
    state: more.urls.length === 0 && stage.state !== "draining" ? "starting" : stage.state,
    ledgerOutage: services.ledgerAvailability.outage,
    generation: built.gen.number,
    frontends: frontendStatusesOf(built),
    configHash: config.hash,
    loadedAt,
    generations: stage.generations(),
    unmountedProviders: [...config.unmountedProviders].map(([provider, why]) => ({
      provider,
      reason: why,
    })),
    modelLists: refresh.status(),
    priceFeed: priceFeed.status(),
    cooldowns: services.targetHealth.describeCooldowns(),
    quarantinedHooks: services.hookBreakers.list(),
    unreachablePlugins: listUnreachablePlugins(built),
    latencies: services.targetHealth.latencies(),
    files: services.fileStore.counts(),
    instances: await readInstances(services.store),
    oldProcess: await before,
  };
}

const frontendStatusesOf = ({ frontends }: Pick<BuiltGeneration, "frontends">): FrontendStatus[] =>
  frontends
    .filter(({ server }) => server)
    .map(({ name, routes }) => ({
      name,
      paths: routes.flatMap((route) =>
        "actionType" in route && route.actionType === "generate" ? [route.path].flat() : [],
      ),
    }));
