// A running gateway: one set of services, one current config generation, one open port. A reload
// builds a complete new generation and then swaps one reference. The old generation is stopped only
// when the new generation is ready, so no rollback is needed.
import { join } from "node:path";
import { wallClock } from "../lib/time/wall-clock.ts";
import type { ListRefresher } from "../catalog/list-refresher.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { GatewayConfig, LocatedProblem } from "../config/gateway-config.ts";
import type { LifetimeScope } from "../lib/lifetime-scope.ts";
import type { StoreEvent } from "../plugin/store/store-instance.ts";
import type { GatewayStats } from "../plugin/gateway-stats.ts";
import { ChangeBroadcast } from "../runtime/change-broadcast.ts";
import { explainRequest } from "../admin/commands/explanation.ts";
import { createFirstKey } from "../runtime/store-keys.ts";
import { findRetentionProblem } from "../runtime/ledger/ledger-retention.ts";
import {
  type GatewayOptions,
  toWorkerGeneration,
  type StartOptions,
  createStatus,
} from "./gateway-options.ts";
import { openServices, type Services } from "../runtime/services.ts";
import { removeHandoffMarker } from "../admin/socket/control-socket-path.ts";
import type { PluginPeers } from "../runtime/services/peer-gateways.ts";
import { PriceFeed } from "../runtime/services/price-feed.ts";
import { instanceInfoOf, readFleet } from "../runtime/services/fleet.ts";
import { assertLedgerAnswers } from "../runtime/ledger/open-store.ts";
import type { TransferableStore } from "../runtime/ledger/transferable-store.ts";
import type { StatsCollector } from "../runtime/health/stats-collector.ts";
import { createStatsCollector } from "../runtime/health/primary-stats.ts";
import {
  type ReloadTarget,
  reloadConfig,
  replaceGeneration,
} from "../runtime/reload/apply-config.ts";
import { reportReload } from "../runtime/reload/reload-rules.ts";
import type { ListenerHandle } from "../runtime/http/listener.ts";
import { maxShutdownMs, LameDuck } from "./lame-duck.ts";
import { listSourcesOf, createGatewayListRefresher } from "../runtime/generation/list-sources.ts";
import { GenerationSlot, type LiveGeneration } from "../runtime/generation/generation-slot.ts";
import { logWarnings } from "../runtime/reload/read-config.ts";
import type {
  RequestExplanation,
  Gateway,
  ReloadTrigger,
  GatewayStatus,
} from "../runtime/gateway-api.ts";
import type { WorkerPool } from "../runtime/workers/worker-pool.ts";
import { mergeStatus } from "../runtime/workers/worker-protocol.ts";
import { ControlPlane } from "./control-plane.ts";
import { removeSockets } from "../runtime/http/unix-socket.ts";
import type { DescriptorRegistry } from "./handoff/handoff-protocol.ts";
import { listOwnSocketPaths, Handoff } from "./handoff/handoff.ts";

/**
 * Runs one call at a time. A call during a run starts another run after it, because the inputs may
 * have changed in the meantime.
 */
export function coalesceRuns<W, T>(run: (why: W) => Promise<T>): (why: W) => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const start = (why: W): Promise<T> => {
    next = undefined;
    const currentRun = run(why).finally(() => {
      if (!next) running = undefined;
    });
    return (running = currentRun);
  };
  return (why) =>
    running
      ? (next ??= running.then(
          () => start(why),
          () => start(why),
        ))
      : start(why);
}

export class GatewayServer implements Gateway {
  readonly #options: GatewayOptions;
  readonly #scope: LifetimeScope;
  readonly #startedAt = wallClock();
  #services!: Services;
  #changeBroadcast: ChangeBroadcast | undefined;
  #accountsChangedEarly = false;
  #listRefresher!: ListRefresher;
  #priceFeed!: PriceFeed;
  #generations!: GenerationSlot;
  /** Listener for clients: the port of this process, or the ports of the workers. */
  #listener: ((ListenerHandle | WorkerPool) & { destroy(): unknown }) | undefined;
  #workerPool: WorkerPool | undefined;
  #statsCollector: StatsCollector | undefined;
  #lastGeneration = 0;
  #lastReload: GatewayStatus["lastReload"];
  #stopPromise: Promise<void> | undefined;
  #handoff!: Handoff;
  /** Unix sockets that this gateway removes when it ends. */
  #ownedSocketPaths: readonly string[] = [];
  #controlPlane!: ControlPlane;
  readonly #lameDuck = new LameDuck();
  readonly #failed = Promise.withResolvers<Error>();
  firstKey: string | undefined;

  /** `scope` is disposed with the gateway. */
  constructor(options: GatewayOptions, scope: LifetimeScope) {
    this.#options = options;
    this.#scope = scope;
  }

  get url(): string {
    return this.urls[0] ?? "";
  }
  get urls(): readonly string[] {
    return this.#listener?.urls ?? [];
  }
  get adminUrl(): string | undefined {
    return this.#controlPlane?.adminListener?.url;
  }
  get stateDir(): string {
    return this.#services.stateDir;
  }
  get inFlight(): number {
    return this.#listener?.inFlight() ?? 0;
  }
  get maxShutdownMs(): number {
    return maxShutdownMs(this.#generations.current.config.shutdown, this.#workerPool !== undefined);
  }
  get failed(): Promise<Error> {
    return this.#failed.promise;
  }
  async start(options: StartOptions): Promise<readonly LocatedProblem[] | undefined> {
    const { loaded, config, processCount } = options;
    this.#services = await openServices(config, {
      ...options,
      mask: this.#options.mask,
      scope: this.#scope,
      adminConfig: () => this.#generations.current.config.admin,
      publicUrl: () => this.#generations.current.config.publicUrl ?? this.url,
      isTransferring: () => options.transferableStore.isTransferring,
      instanceInfo: () =>
        instanceInfoOf(this.#options.version, this.url, this.#generations?.current),
    });
    this.#changeBroadcast = new ChangeBroadcast(this.#services, () => [
      this.#workerPool,
      this.#options.oldProcess,
    ]);
    const changes = this.#changeBroadcast;
    this.#services.keyChanges.notify = () => changes.keysChanged();
    if (this.#accountsChangedEarly) await this.#changeBroadcast.reloadAccounts();
    this.#generations = new GenerationSlot(this.#services);
    this.#listRefresher = this.#scope.own(createGatewayListRefresher(this.#services));
    this.#priceFeed = this.#scope.own(
      new PriceFeed({
        overlay: this.#services.priceOverlay,
        log: this.#services.log,
        dir: join(config.stateDir, "prices"),
        proxy: config.proxy,
        shared:
          this.#services.store.getOrCreateShared &&
          ((name, make) => this.#services.store.getOrCreateShared!(name, make)),
      }),
    );
    await this.#priceFeed.configure(config);
    const here = {
      services: this.#services,
      generations: this.#generations,
      listRefresher: this.#listRefresher,
    };
    this.#statsCollector = createStatsCollector(
      { ...here, version: this.#options.version },
      () => this.#workerPool?.statsSources() ?? [],
    );
    // Providers are not probed during a handover, because requests are waiting and the states of
    // the providers are already known.
    const serving = await this.#build(loaded, config, this.#options.oldProcess === undefined);
    if ("problems" in serving) return serving.problems;
    logWarnings(this.#options.log, serving.built.warnings);
    this.#generations.swap(serving);
    await this.#options.oldProcess?.storeOpened(this.#services);
    if (serving.built.middleware.some(({ needsFirstKey }) => needsFirstKey))
      this.firstKey = await createFirstKey(this.#services);
    const { clients: handed = [], admin: fd } = this.#options.inheritedSockets ?? {};
    this.#ownedSocketPaths = [
      ...options.handedOverSocketPaths,
      ...listOwnSocketPaths(config, this.#options.inheritedSockets),
    ];
    this.#controlPlane = this.#scope.own(this.#createControlPlane());
    await this.#controlPlane.open(fd);
    await removeHandoffMarker(this.stateDir);
    await options.startupListener?.close();
    if (processCount > 1) {
      const problems = await this.#startWorkers(options, serving);
      if (problems.length > 0) return problems;
    } else this.#listener = await this.#generations.listen(handed.map((fd) => ({ fd })));
    this.#followModelLists(serving);
    this.#controlPlane.startBackgroundTasks();
    this.#handoff = this.#createHandoff(options.transferableStore, options.descriptors);
    await this.#options.oldProcess?.serving();
    return undefined;
  }

  #createHandoff(transferableStore: TransferableStore, descriptors: DescriptorRegistry): Handoff {
    return new Handoff({
      options: this.#options,
      services: this.#services,
      generations: this.#generations,
      changeBroadcast: this.#changeBroadcast!,
      controlPlane: this.#controlPlane,
      transferableStore,
      descriptors,
      ownedSocketPaths: this.#ownedSocketPaths,
      listener: () => this.#listener!,
      rebuildGeneration: (loaded, config) =>
        replaceGeneration(this.#reloadTarget(), loaded, config),
    });
  }

  hotRestart = (): Promise<number> =>
    this.#handoff.hotRestart(
      () => this.#stopPromise === undefined,
      () => (this.#stopPromise = this.#closeForHandoff()),
    );

  /** Finishes the open requests. New requests are sent to the new process. */
  async #closeForHandoff(): Promise<void> {
    this.#generations.drain(false);
    this.#logCutRequests(
      await this.#listener?.closeForHandoff(this.#generations.current.config.shutdown.timeoutMs),
    );
    await this.#generations.whenDrained();
    await this.#scope[Symbol.asyncDispose]();
    this.#handoff.reportExit();
    this.#options.log.flush();
  }

  #logCutRequests(cut = 0): void {
    if (cut > 0) this.#options.log.warn({ cut }, "drain timeout reached, connections closed");
  }

  /**
   * Handles an event from another instance. An event that arrives before the services exist is
   * processed once they do.
   */
  onStoreEvent = (news: StoreEvent): void =>
    this.#changeBroadcast
      ? this.#changeBroadcast.onStoreEvent(news)
      : void (this.#accountsChangedEarly = true);

  askPeers: PluginPeers["ask"] = async (id, question, near) =>
    (await this.#workerPool?.askPlugins(id, question)) ??
    this.#services.peerGateways.askFirst(id, question, near);

  stats = async (): Promise<GatewayStats | undefined> => this.#statsCollector?.read();

  readonly reload = coalesceRuns(async (trigger: ReloadTrigger) => {
    if (trigger !== "file")
      this.#services.observerSink.reportEvent({
        type: "reload_requested",
        at: wallClock(),
        trigger,
      });
    const [result, at] = [await reloadConfig(this.#reloadTarget(), trigger), wallClock()];
    const now = { ...result, at, trigger };
    reportReload(this.#services, this.#lastReload, now);
    this.#lastReload = now;
    return result;
  });

  assertLedgerAnswers = (withinMs: number): Promise<void> =>
    assertLedgerAnswers(this.#services, withinMs);

  async status(): Promise<GatewayStatus> {
    const own = createStatus(this, {
      version: this.#options.version,
      file: this.#options.configFile,
      startedAt: this.#startedAt,
      urls: this.urls,
      lastReload: this.#lastReload,
      lastHotRestart: this.#handoff?.lastFailure,
      services: this.#services,
      stage: this.#generations,
      refresh: this.#listRefresher,
      priceFeed: this.#priceFeed,
      before: this.#options.oldProcess?.readStatus(),
    });
    return mergeStatus(await own, await this.#workerPool?.status());
  }

  fleet = () =>
    readFleet(
      this.#services,
      instanceInfoOf(this.#options.version, this.url, this.#generations.current),
    );
  async explain(model: string, name?: string, client = {}): Promise<RequestExplanation> {
    const { built, config } = this.#generations.current;
    const { cooldowns, quarantinedHooks, latencies } = await this.status();
    return explainRequest(built, config, model, {
      name,
      client,
      cooldowns,
      quarantinedHooks,
      latencies,
    });
  }

  stop(): Promise<void> {
    return (this.#stopPromise ??= this.#stop());
  }

  async #stop(): Promise<void> {
    const readyzWasQueried = [
      this.#generations.announceShutdown(),
      await this.#workerPool?.announceClose(),
    ].includes(true);
    if (!this.#options.isInteractive)
      await this.#lameDuck.waitForBalancers(
        this.#generations.current.config.shutdown,
        readyzWasQueried,
        this.#options.log,
      );
    this.#generations.drain();
    // Connections to providers close only when no query uses them.
    this.#listRefresher[Symbol.dispose]();
    this.#logCutRequests(
      await this.#listener?.close(this.#generations.current.config.shutdown.timeoutMs),
    );
    // The admin listener reports the progress of the shutdown until this point.
    await this.#controlPlane.closeAdmin();
    await this.#generations.whenDrained();
    // Calls that the previous gateway still has open are settled in this process.
    await this.#options.oldProcess?.whenExited(this.#generations.current.config.shutdown.timeoutMs);
    await this.#scope[Symbol.asyncDispose]();
    await removeSockets(this.#ownedSocketPaths);
    this.#options.log.flush();
  }

  async kill(): Promise<void> {
    this.#lameDuck.cancel();
    await this.#listener?.destroy();
    this.#services.inFlightRequests.cancelBackground();
    await this.stop();
  }

  async #build(loaded: LoadedConfig, config: GatewayConfig, probe = true) {
    const retentionProblem = findRetentionProblem(loaded, config, this.#services.store);
    if (retentionProblem) return { problems: [retentionProblem] };
    const number = this.#lastGeneration + 1;
    const serving = await this.#generations.build({
      number,
      loaded,
      config,
      probesProviders: probe,
    });
    if (!("problems" in serving)) this.#lastGeneration = number;
    return serving;
  }

  #createControlPlane(): ControlPlane {
    return new ControlPlane({
      gateway: this,
      options: this.#options,
      services: this.#services,
      changeBroadcast: this.#changeBroadcast!,
      workerPool: () => this.#workerPool,
      listRefresher: this.#listRefresher,
      priceFeed: this.#priceFeed,
      generations: this.#generations,
    });
  }

  #reloadTarget = (): ReloadTarget => ({
    options: this.#options,
    log: this.#services.log,
    generations: this.#generations,
    build: (loaded, config) => this.#build(loaded, config),
    changeWorkers: async (serving, { locate }) =>
      this.#workerPool?.changeGeneration(this.#workerGenerationOf(serving), locate),
    followModelLists: (serving) => this.#followModelLists(serving),
  });

  #followModelLists = ({ built, config }: LiveGeneration): void => {
    this.#listRefresher.follow(listSourcesOf(built, this.#services), config.catalog.refreshMs);
    void this.#priceFeed.configure(config);
  };

  async #startWorkers(
    { processCount, descriptors }: StartOptions,
    serving: LiveGeneration,
  ): Promise<readonly LocatedProblem[]> {
    const { WorkerPool } = await import("../runtime/workers/worker-pool.ts");
    const pool = new WorkerPool(
      {
        size: processCount,
        program: this.#options.workerProgram!,
        services: this.#services,
        listen: serving.config.listen,
        inheritedDescriptors: this.#options.inheritedSockets?.clients ?? [],
        stopAccepting: (place) => descriptors.close(place),
        shutdownTimeoutMs: () => this.#generations.current.config.shutdown.timeoutMs,
        onFailed: this.#failed.resolve,
        onWorkerExit: (source) => this.#statsCollector!.sourceEnded(source),
      },
      this.#workerGenerationOf(serving),
    );
    const problems = await pool.open();
    if (problems.length > 0) return problems;
    this.#listener = this.#workerPool = pool;
    this.#generations.markOpen();
    return problems;
  }

  #workerGenerationOf = ({ built, loaded }: LiveGeneration) =>
    toWorkerGeneration(this.#options, built.gen.number, loaded.texts);
}
