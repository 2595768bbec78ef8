// A worker process: services that use the primary's store, a generation slot, and a shared port. It
// follows the primary's commands, and ends when the primary ends.
import { resolve } from "node:path";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { createInMemoryModelLists } from "../../catalog/model-lists.ts";
import { PriceOverlay } from "../../catalog/prices/price-overlay.ts";
import { readDefaultConfig } from "../../lib/package-root.ts";
import { loadConfig } from "../../config/load-config.ts";
import type { GatewayConfig, LoadPlugin, LocatedProblem } from "../../config/gateway-config.ts";
import type { Log } from "../../lib/log/log.ts";
import type { SecretMask } from "../../lib/log/secret-mask.ts";
import { LifetimeScope, SharedResources } from "../../lib/lifetime-scope.ts";
import { AccountCache } from "../services/account-cache.ts";
import { followLedgerAvailability, LedgerAvailability } from "../services/ledger-availability.ts";
import { openServices, type Services } from "../services.ts";
import type { ListenerHandle } from "../http/listener.ts";
import { createRemoteSink } from "../observers/remote-sink.ts";
import { findLocalEndpoint } from "../http/local-endpoint.ts";
import { GenerationSlot, type LiveGeneration } from "../generation/generation-slot.ts";
import { LocalStatsReader } from "../health/process-stats.ts";
import { createPluginPeers } from "../services/peer-gateways.ts";
import { listUnreachablePlugins } from "../health/unreachable-plugins.ts";
import { createRemoteStore } from "./remote-store.ts";
import { createIpcLink, type IpcChannel, type IpcLink } from "./ipc-link.ts";
import type { WorkerCommands, WorkerGeneration } from "./worker-protocol.ts";

export interface WorkerOptions {
  readonly load: LoadPlugin;
  readonly log: Log;
  readonly mask: SecretMask;
}

/** Starts a worker that is controlled over the channel. */
export const startWorker = (options: WorkerOptions, channel: IpcChannel): WorkerProcess =>
  new WorkerProcess(options, channel);

interface OpenedWorker {
  readonly services: Services;
  readonly slot: GenerationSlot;
  readonly reader: LocalStatsReader;
}

class WorkerProcess {
  readonly #options: WorkerOptions;
  readonly #scope = new LifetimeScope();
  readonly #modelLists = createInMemoryModelLists();
  readonly #priceOverlay = this.#scope.own(new PriceOverlay());
  readonly #accountCache = new AccountCache();
  readonly #ledgerAvailability = new LedgerAvailability();
  readonly #startedAt = wallClock();
  readonly #exit = Promise.withResolvers<void>();
  readonly #link: IpcLink;
  readonly #observerSink: ReturnType<typeof createRemoteSink>;
  readonly #peers: ReturnType<typeof createPluginPeers>;
  #opened: OpenedWorker | undefined;
  #prepared: LiveGeneration | undefined;
  #url = "";
  #listener: ListenerHandle | undefined;

  constructor(options: WorkerOptions, channel: IpcChannel) {
    this.#options = options;
    this.#link = createIpcLink(channel, this.#commands());
    this.#observerSink = createRemoteSink(() => this.#link);
    this.#peers = createPluginPeers((id, question, near) =>
      this.#link.call("askPeers", id, question, near),
    );
    channel.once("disconnect", this.#exit.resolve);
  }

  /** Resolves when this worker should end. */
  get whenDone(): Promise<void> {
    return this.#exit.promise;
  }

  /** Reports a failure in this process, so that another process takes over. */
  reportUnhealthy(): void {
    this.#link.notify("reportUnhealthy");
  }

  #commands(): WorkerCommands {
    return {
      prepareGeneration: (of) => this.#prepare(of),
      commitGeneration: (at) => this.#commit(at),
      abandonGeneration: () => this.#abandon(),
      updateModelLists: (provider, lists) => this.#updateModelLists(provider, lists),
      updatePrices: (book) => this.#priceOverlay.set(book),
      askPlugin: (id, question) => this.#peers.handle(id, question),
      invalidateKeys: () => this.#opened?.services.keyCache.invalidate(),
      resetCooldowns: (provider, credential) =>
        this.#opened?.services.targetHealth.reset(provider, credential),
      accountChanged: (record) => this.#accountCache.put(record),
      reloadAccounts: () => this.#accountCache.load(createRemoteStore(this.#link)),
      setLedgerAvailability: (trouble) =>
        this.#opened
          ? followLedgerAvailability(this.#opened.services, trouble)
          : this.#ledgerAvailability.set(trouble),
      readStatus: () => this.#status(),
      readStats: () => this.#opened!.reader.read(),
      listInFlight: () => this.#opened?.services.inFlightRequests.listLongest() ?? [],
      listSockets: () => this.#opened?.slot.sockets.listOldest() ?? [],
      closeSocket: (id) => this.#opened?.slot.sockets.closeForAdmin(id) ?? false,
      announceShutdown: () => this.#opened!.slot.announceShutdown(),
      stop: (drainMs, succeeded) => this.#stop(drainMs, succeeded),
    };
  }

  async #prepare(
    of: Parameters<WorkerCommands["prepareGeneration"]>[0],
  ): Promise<readonly LocatedProblem[]> {
    const { generation, file, configTexts, env, overrides } = of;
    await this.#abandon();
    const loaded = await loadConfig(resolve(file ?? "gateway.yaml"), {
      env,
      recordedTexts: configTexts,
      overrides,
      loadPlugin: this.#options.load,
      ...(file === undefined && { textOverride: readDefaultConfig() }),
    });
    const { config } = loaded;
    if (!config) return loaded.problems;
    this.#opened ??= await this.#open(config, env);
    // The primary has checked the readiness of providers for all workers.
    const built = {
      number: generation,
      loaded,
      config,
      probesProviders: false,
      ownsObservers: false,
    };
    const serving = await this.#opened.slot.build(built);
    if ("problems" in serving) return serving.problems;
    this.#prepared = serving;
    return [];
  }

  async #commit(at: Parameters<WorkerCommands["commitGeneration"]>[0]): Promise<readonly string[]> {
    const { slot } = this.#opened!;
    if (this.#prepared) slot.swap(this.#prepared);
    this.#prepared = undefined;
    this.#listener ??= await slot.listen(at);
    this.#url = this.#listener.url;
    return this.#listener.urls;
  }

  async #abandon(): Promise<void> {
    const unwanted = this.#prepared;
    this.#prepared = undefined;
    await unwanted?.built.retire();
  }

  #updateModelLists(
    provider: string,
    lists: Parameters<WorkerCommands["updateModelLists"]>[1] = [],
  ): void {
    for (const { credential, models, at } of lists)
      this.#modelLists.update(provider, credential, models, at);
    const credentials = lists.map(({ credential }) => credential);
    this.#modelLists.retainCredentials(provider, credentials);
  }

  #status(): ReturnType<WorkerCommands["readStatus"]> {
    const { services, slot } = this.#opened!;
    return {
      pid: process.pid,
      startedAt: this.#startedAt,
      generations: slot.generations(),
      cooldowns: services.targetHealth.describeCooldowns(),
      quarantinedHooks: services.hookBreakers.list(),
      unreachablePlugins: listUnreachablePlugins(slot.current.built),
      latencies: services.targetHealth.latencies(),
      files: services.fileStore.counts(),
    };
  }

  async #stop(drainMs: number, succeeded: boolean): Promise<number> {
    const slot = this.#opened?.slot;
    slot?.drain(!succeeded);
    const how = succeeded ? "closeForHandoff" : "close";
    const cut = (await this.#listener?.[how](drainMs)) ?? 0;
    await this.#abandon();
    await slot?.whenDrained();
    this.#observerSink.flush();
    await this.#scope[Symbol.asyncDispose]();
    // The response is sent before the process ends.
    setImmediate(this.#exit.resolve);
    return cut;
  }

  async #open(config: GatewayConfig, env: WorkerGeneration["env"]): Promise<OpenedWorker> {
    const { log, mask } = this.#options;
    const services = await openServices(config, {
      contextServices: {
        log,
        stateDir: config.stateDir,
        proxy: config.proxy,
        env,
        shared: new SharedResources(),
        pluginPeers: this.#peers,
        localEndpoint: () => findLocalEndpoint(this.#listener?.urls ?? [], config.listen),
        stats: () => this.#link.call("readStats"),
      },
      mask,
      scope: this.#scope,
      publicUrl: () => this.#opened!.slot.current.config.publicUrl ?? this.#url,
      store: createRemoteStore(this.#link),
      modelLists: this.#modelLists,
      priceOverlay: this.#priceOverlay,
      accountCache: this.#accountCache,
      observerSink: this.#observerSink,
      remoteStoreState: {
        ledgerAvailability: this.#ledgerAvailability,
        onFailure: (why) => this.#link.notify("reportStoreFailure", why),
      },
      idempotency: {
        claim: (claim) => this.#link.call("claim", claim),
        complete: (claim, outcome) => this.#link.call("completeClaim", claim, outcome),
        ownerExited() {},
      },
    });
    const slot = new GenerationSlot(services);
    return { services, slot, reader: new LocalStatsReader(services, slot) };
  }
}
