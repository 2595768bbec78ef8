// Hot restart in the old process: releases its resources in order, continues to serve requests
// through the new process's store, and shuts down.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import type { GatewayConfig, LocatedProblem } from "../../config/gateway-config.ts";
import { fail, publicErrorText } from "../../model/error.ts";
import { createRemoteSink } from "../../runtime/observers/remote-sink.ts";
import type { ObserverHub } from "../../runtime/observers/observer-hub.ts";
import type { GenerationSlot, LiveGeneration } from "../../runtime/generation/generation-slot.ts";
import type { ListenerHandle } from "../../runtime/http/listener.ts";
import type { ControlPlane } from "../control-plane.ts";
import type { GatewayStatus } from "../../runtime/gateway-api.ts";
import type { GatewayOptions, InheritedSockets } from "../gateway-options.ts";
import { followLedgerAvailability } from "../../runtime/services/ledger-availability.ts";
import type { TransferableStore } from "../../runtime/ledger/transferable-store.ts";
import type { Services } from "../../runtime/services.ts";
import { writeHandoffMarker, removeHandoffMarker } from "../../admin/socket/control-socket-path.ts";
import { createRemoteStore } from "../../runtime/workers/remote-store.ts";
import type { IpcLink } from "../../runtime/workers/ipc-link.ts";
import type { WorkerPool } from "../../runtime/workers/worker-pool.ts";
import type { ChangeBroadcast } from "../../runtime/change-broadcast.ts";
import {
  type DescriptorRegistry,
  descriptorOf,
  type HandedOverState,
  type NewProcessCalls,
} from "./handoff-protocol.ts";
import { startNewProcess, type NewProcess, type InheritedSocket } from "./new-process.ts";
import { readGatewayConfig } from "../../runtime/reload/read-config.ts";
import { changedStaticKeys } from "../../runtime/reload/reload-rules.ts";
import type { BoundAddress } from "../../runtime/http/listen-targets.ts";
import type { Store } from "../../plugin/store/store.ts";

/** Dependencies of a gateway that can be replaced. */
export interface HandoffOptions {
  readonly options: GatewayOptions;
  readonly services: Services;
  readonly generations: GenerationSlot;
  readonly changeBroadcast: ChangeBroadcast;
  readonly transferableStore: TransferableStore;
  readonly descriptors: DescriptorRegistry;
  readonly ownedSocketPaths: readonly string[];
  readonly listener: () => Pick<ListenerHandle, "servers" | "inFlight"> | WorkerPool;
  readonly controlPlane: ControlPlane;
  /** Builds a config generation with new observers, after the old observers were closed. */
  rebuildGeneration(
    loaded: LoadedConfig,
    config: GatewayConfig,
  ): Promise<LiveGeneration | { problems: readonly LocatedProblem[] }>;
}

export class Handoff {
  readonly #options: HandoffOptions;
  #newProcess: NewProcess | undefined;
  #running: Promise<number> | undefined;
  #newProcessLink: IpcLink | undefined;
  readonly #observerLink: Pick<IpcLink, "notify"> = {
    notify: (name, ...args) => this.#newProcessLink?.notify(name, ...args),
  };
  /** The last hot restart that failed. */
  lastFailure: GatewayStatus["lastHotRestart"];

  constructor(of: HandoffOptions) {
    this.#options = of;
  }

  /**
   * Starts a hot restart. Calls `leave` when the new process serves requests, and returns its
   * process ID. Only one hot restart runs at a time.
   */
  hotRestart(isAllowed: () => boolean, leave: () => void): Promise<number> {
    return (this.#running ??= this.#hotRestart(isAllowed, leave));
  }

  async #hotRestart(may: () => boolean, leave: () => void): Promise<number> {
    try {
      if (!may()) fail("unavailable", "The gateway is shutting down.", { code: "stopping" });
      const { pid } = await this.#startNewProcess();
      leave();
      return pid;
    } catch (error) {
      this.#running = undefined;
      this.lastFailure = { ok: false, at: wallClock(), reason: publicErrorText(error) };
      throw error;
    }
  }

  /** Resolves when the new process serves and owns the store. */
  async #startNewProcess(): Promise<NewProcess> {
    const { options, services, generations, listener, controlPlane, descriptors, changeBroadcast } =
      this.#options;
    await assertReplaceable(options, { config: generations.current.config, store: services.store });
    services.log.info({}, "hot restart requested, starting new process");
    this.#newProcess = await startNewProcess({
      sockets: listOpenSockets(listener(), controlPlane.adminListener, descriptors),
      log: services.log,
      handlers: {
        inFlight: () => listener().inFlight(),
        invalidateKeys: () => void changeBroadcast.invalidateKeys(),
        accountChanged: (record) => void changeBroadcast.accountChanged(record),
        reloadAccounts: () => changeBroadcast.reloadAccounts(),
        resetCooldowns: (provider, credential) => services.targetHealth.reset(provider, credential),
        setLedgerAvailability: (trouble) => followLedgerAvailability(services, trouble),
      },
      releaseStore: (wanted) => this.#releaseStore(wanted),
      takeBack: () => this.#takeBack(),
      onStoreTaken: (link) => this.#useNewProcessStore(link),
    });
    return this.#newProcess;
  }

  /** Reports that this process has finished. */
  reportExit(): void {
    this.#newProcess?.link.notify("exited");
  }

  async #releaseStore({
    stateDir,
  }: Parameters<NewProcessCalls["takeStore"]>[0]): Promise<HandedOverState> {
    const { services, generations, transferableStore, ownedSocketPaths, controlPlane } =
      this.#options;
    if (stateDir !== services.stateDir)
      fail(
        "conflict",
        `The new process would use the state directory ${stateDir}, but this gateway uses ${services.stateDir}.`,
      );
    const shared = services.store.lease !== undefined;
    await writeHandoffMarker(stateDir);
    await controlPlane.close();
    await generations.closeObservers();
    await services.requestHistory?.stopPersisting();
    // Until the link exists, messages are dropped or are repeated by a later generation of this
    // process.
    (services.observerSink as ObserverHub).redirectTo(createRemoteSink(() => this.#observerLink));
    const since = Math.min(
      wallClock(),
      ...services.inFlightRequests.listLongest().map(({ startedAt }) => startedAt),
    );
    if (!shared) await transferableStore.close();
    return {
      instanceId: shared ? undefined : services.instanceId,
      oldestOpenCallAt: since,
      ownedSocketPaths,
    };
  }

  async #takeBack(): Promise<void> {
    const { services, generations, transferableStore, controlPlane, rebuildGeneration } =
      this.#options;
    // The marker is missing if the failed process had begun to serve requests, so it is written
    // again. If this fails, for example because the disk is full, this gateway must still continue.
    await writeHandoffMarker(services.stateDir).catch(() => {});
    if (services.store.lease === undefined) await transferableStore.reopen();
    (services.observerSink as ObserverHub).redirectTo(undefined);
    services.requestHistory?.resumePersisting();
    await controlPlane.open();
    await removeHandoffMarker(services.stateDir);
    controlPlane.startBackgroundTasks();
    const { loaded, config } = generations.current;
    const rebuilt = await rebuildGeneration(loaded, config);
    if ("problems" in rebuilt)
      services.log.error({ problems: rebuilt.problems }, "observer setup failed");
    services.log.warn({}, "handoff failed, gateway continues");
  }

  #useNewProcessStore(link: IpcLink): void {
    this.#newProcessLink = link;
    const { services, transferableStore } = this.#options;
    if (services.store.lease === undefined) transferableStore.redirectTo(createRemoteStore(link));
  }
}

// Checks and lists the resources that a gateway must release for a hot restart, because only one
// process may have them.

/** Throws an error with the reason if this gateway cannot be replaced while it serves requests. */
async function assertReplaceable(
  options: GatewayOptions,
  { config, store }: { config: GatewayConfig; store: Pick<Store, "lease" | "supportsHandoff"> },
): Promise<void> {
  const cannot = (why: string) =>
    fail("invalid", `${why} Stop the gateway and start it again.`, { code: "not_replaceable" });
  if (process.platform === "win32") cannot("Windows cannot pass an open port to another process.");
  if (process.pid === 1)
    cannot(
      "The gateway is the container's main process, so replacing it would stop the container.",
    );
  if (!store.lease && !store.supportsHandoff)
    cannot(`The store ${config.store.use} allows only one process.`);
  const loaded = await readGatewayConfig(options);
  if (!loaded.config)
    return fail("invalid", "gateway.yaml has errors. Run tollgate check to list them.", {
      code: "config",
    });
  // The number of workers may change with the new process.
  const differing = changedStaticKeys(config, loaded.config).filter((key) => key !== "workers");
  if (differing.length > 0)
    cannot(`${differing.join(", ")} in gateway.yaml cannot change without a restart.`);
}

/**
 * Returns the open sockets in the order that the new process expects: client listeners as in
 * `listen`, then the admin listener.
 */
function listOpenSockets(
  listener: Pick<ListenerHandle, "servers"> | { readonly addresses: readonly BoundAddress[] },
  admin: ListenerHandle | undefined,
  descriptors: DescriptorRegistry,
): readonly InheritedSocket[] {
  const clients =
    "addresses" in listener
      ? listener.addresses.map((at) => descriptors.find(at))
      : listener.servers.map(descriptorOf);
  const own = admin && descriptorOf(admin.server);
  const all = [
    ...clients.map((fd) => ({ fd, name: "clients" as const })),
    ...(admin ? [{ fd: own, name: "admin" as const }] : []),
  ];
  return all.map(({ fd, name }) => ({
    name,
    fd:
      fd ??
      fail("unavailable", "This runtime cannot pass an open port to another process.", {
        code: "no_descriptor",
      }),
  }));
}

/**
 * Returns the paths of Unix sockets that this gateway opens itself. `handed`: inherited
 * descriptors, which are used instead of the first sockets and which other processes own.
 */
export const listOwnSocketPaths = (
  { listen, admin }: Pick<GatewayConfig, "listen" | "admin">,
  handed: InheritedSockets | undefined,
): readonly string[] => [
  ...listen.slice(handed?.clients.length ?? 0).flatMap(({ socket }) => socket ?? []),
  ...(admin && "socket" in admin.address && handed?.admin === undefined
    ? [admin.address.socket]
    : []),
];
