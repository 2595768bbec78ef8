// Hot restart from the side of the old process: releases its resources in order, keeps serving
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
import type { GatewayOptions } from "../gateway-options.ts";
import { followLedgerAvailability } from "../../runtime/services/ledger-availability.ts";
import type { TransferableStore } from "../../runtime/ledger/transferable-store.ts";
import type { Services } from "../../runtime/services.ts";
import { writeHandoffMarker, removeHandoffMarker } from "../../admin/socket/handoff-marker.ts";
import { createRemoteStore } from "../../runtime/workers/remote-store.ts";
import type { IpcLink } from "../../runtime/workers/ipc-link.ts";
import type { WorkerPool } from "../../runtime/workers/worker-pool.ts";
import type { ChangeBroadcast } from "../../runtime/change-broadcast.ts";
import type { DescriptorRegistry } from "./descriptors.ts";
import { assertReplaceable, listOpenSockets } from "./release.ts";
import type { HandedOverState, NewProcessCalls } from "./handoff-protocol.ts";
import { startNewProcess, type NewProcess } from "./new-process.ts";

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
  /** Builds a config generation with new observers, after the old ones were closed. */
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
   * Starts a hot restart. Calls `leave` when the new process serves, and returns its process id.
   * Only one hot restart runs at a time.
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
    // Until the link exists, messages are dropped, or repeated by a later generation of this
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
    // The marker is missing if the failed process had begun to serve, so it is written again. A full
    // disk must not keep this gateway from continuing.
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
