// What outlives a generation: one of each per process. A generation borrows from here and owns the rest.
import { join } from "node:path";
import { wallClock } from "../lib/time/wall-clock.ts";
import { openModelLists, type ModelLists } from "../catalog/model-lists.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { AdminPrincipals, type AdminPrincipalsOptions } from "./access/admin-principals.ts";
import type { Log } from "../lib/log/log.ts";
import type { ProxyConfig } from "../lib/net/http-proxy.ts";
import { LogThrottle } from "../lib/log/log-throttle.ts";
import type { SecretMask } from "../lib/log/secret-mask.ts";
import type { LifetimeScope, SharedResources } from "../lib/lifetime-scope.ts";
import { createOutputHistory, type OutputHistory } from "../money/output-history.ts";
import type { InstanceInfo } from "../plugin/store/store-instance.ts";
import type { GatewayStats } from "../plugin/gateway-stats.ts";
import type { Store } from "../plugin/store/store.ts";
import type { ImageFiles } from "../pipeline/response/image-files.ts";
import { TargetHealth } from "../pipeline/routing/target-health.ts";
import { AdmissionQueue } from "../pipeline/admission/admission-queue.ts";
import { MemoryBudget } from "../pipeline/admission/memory-budget.ts";
import { HookBreakers } from "../pipeline/hooks/hook-breaker.ts";
import { LoadMonitor } from "../pipeline/admission/load-monitor.ts";
import { ConcurrencyCounter } from "../pipeline/admission/concurrency-counter.ts";
import { TimerWheel } from "../pipeline/admission/timer-wheel.ts";
import type { IdempotencyRegistry } from "../pipeline/exchange/idempotency.ts";
import { InMemoryIdempotencyRegistry } from "./services/idempotency-registry.ts";
import { AccountCache } from "./services/account-cache.ts";
import { createQueryLimiter, withQueryLimits } from "./ledger/usage-queries.ts";
import { createDownloader } from "./services/download.ts";
import { openFileStore, type FileStore } from "./services/image-file-store.ts";
import { agreeOnSigningKey } from "./services/signing-key.ts";
import { createKeyCache, type KeyCache } from "./services/key-cache.ts";
import { LedgerAvailability } from "./services/ledger-availability.ts";
import type { LedgerQueue } from "./ledger/ledger-queue-api.ts";
import { createLedgerQueue } from "./ledger/ledger-queue.ts";
import { ObserverHub, type ObserverSink } from "./observers/observer-hub.ts";
import { ThresholdDelivery } from "./observers/threshold-delivery.ts";
import { DurationRecorder } from "./services/duration-histogram.ts";
import { RejectionCounter } from "./services/rejection-counter.ts";
import { InFlightRequests } from "./requests/in-flight-requests.ts";
import { createRequestHistory, type RequestHistory } from "./requests/request-history.ts";
import type { LocalEndpoint } from "./http/local-endpoint.ts";
import { ConnectionPools } from "./plugin-host/connection-pools.ts";
import { RetiringModels } from "./services/retiring-models.ts";
import { PeerGateways } from "./services/peer-gateways.ts";
import { answerListRequests } from "./services/peer-model-lists.ts";
import type { PluginPeers } from "./services/plugin-peers.ts";

// What each commit tells: budgets that have been crossed, as the store's verdicts say, the bills that are durable now, and how long
// it took. Every batch of every process passes here on its way to the store, so each is told once.
export const withCommitReports = (
  store: Pick<Store, "apply" | "lease">,
  sink: Pick<ObserverSink, "reportCommit">,
  commits: DurationRecorder,
  thresholds: Pick<ThresholdDelivery, "deliver">,
): Pick<Store, "apply" | "lease"> => ({
  lease: store.lease,
  async apply(batch) {
    const began = performance.now();
    const verdicts = await store.apply(batch);
    commits.record(performance.now() - began);
    sink.reportCommit(batch, verdicts);
    for (const verdict of verdicts)
      if (verdict.ok && verdict.thresholds) thresholds.deliver(verdict.thresholds);
    return verdicts;
  },
});

const FILE_SWEEP_MS = 60_000;
/** A report may take longer than a look-up; a client waits for it all the same. */
const USAGE_QUERY_TIMEOUT_MS = 15_000;

export interface Services {
  readonly log: Log;
  readonly mask: SecretMask;
  readonly shared: SharedResources;
  readonly pools: ConnectionPools;
  readonly store: Store;
  /** The store's way in; observers hear of what a batch has made durable. */
  readonly storeWriter: Pick<Store, "apply" | "lease">;
  readonly ledgerQueue: LedgerQueue;
  /** Whether the ledger accepts rows, as the process that owns the store says it. */
  readonly ledgerAvailability: LedgerAvailability;
  /** The store's readings, as clients get them. */
  readonly usageQueries: Pick<Store, "listEntries" | "sumEntries" | "readLimits">;
  readonly keyCache: KeyCache;
  /** The store's; those of gateway.yaml are each generation's. */
  readonly accountCache: AccountCache;
  /** Of the admin listener, in the process that has it. */
  readonly adminPrincipals?: AdminPrincipals;
  /** What providers said of themselves; read live by every generation. */
  readonly modelLists: ModelLists;
  /** Where observers hear of what happens. */
  readonly observerSink: ObserverSink;
  /** Requests that are over; in the process that has the observers. */
  readonly requestHistory?: RequestHistory;
  readonly targetHealth: TargetHealth;
  /** What plugins are not asked for a while. */
  readonly hookBreakers: HookBreakers;
  readonly retiringModels: RetiringModels;
  readonly logThrottle: LogThrottle;
  readonly outputHistory: OutputHistory;
  readonly timerWheel: TimerWheel;
  readonly memoryBudget: MemoryBudget;
  readonly admissionQueue: AdmissionQueue;
  readonly concurrencyCounter: ConcurrencyCounter;
  readonly idempotency: IdempotencyRegistry;
  readonly imageFiles: ImageFiles;
  readonly fileStore: FileStore;
  readonly pluginPeers: PluginPeers;
  /** What gateways on one store know one another by. */
  readonly fleetSecret: Uint8Array;
  /** What no process of this gateway knows, another one on its store may. */
  readonly peerGateways: Pick<PeerGateways, "askFirst" | "askAll">;
  /** Requests that were turned away before a frontend had them. */
  readonly rejections: RejectionCounter;
  /** Requests that are not over, of this process. */
  readonly inFlightRequests: InFlightRequests;
  /** Of limits, as the store says them; in the process that owns it. */
  readonly thresholds?: ThresholdDelivery;
  /** How long the store took over each batch. Of the process that owns it. */
  readonly commitDurations: DurationRecorder;
  /** Of all processes. */
  readonly stats: () => Promise<GatewayStats>;
  /** Where this process serves clients, for calls from this machine. Throws before it serves. */
  readonly localEndpoint: () => LocalEndpoint;
  /** How a store of several gateways knows this one; in the process that opens it. */
  readonly instanceId?: string;
  readonly stateDir: string;
  /** What calls that leave go through; undefined: they go straight. */
  readonly proxy?: ProxyConfig | undefined;
  /** Of the process; a plugin reads of it what it declares. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What is there before the rest, for the store to stand on. */
export type ContextServices = Pick<
  Services,
  | "log"
  | "shared"
  | "pluginPeers"
  | "stats"
  | "localEndpoint"
  | "instanceId"
  | "stateDir"
  | "proxy"
  | "env"
>;

/** What is remembered is told like any observer, over all generations. */
function createObserverHub(
  log: Log,
  history: RequestHistory | undefined,
  scope: LifetimeScope,
): ObserverHub {
  const hub = new ObserverHub(log, history ? [history.observer] : []);
  scope.defer(() => hub.close());
  return hub;
}

const createHookBreakers = (sink: ObserverSink): HookBreakers =>
  new HookBreakers({
    onQuarantined: (of, failures) =>
      sink.reportEvent({ type: "quarantined", at: wallClock(), ...of, failures }),
    onReleased: (of) => sink.reportEvent({ type: "released", at: wallClock(), ...of }),
  });

const createAdminPrincipals = (
  admin: AdminPrincipalsOptions["adminConfig"],
  record: AdminPrincipalsOptions["findRecord"],
): AdminPrincipals =>
  new AdminPrincipals({ adminConfig: admin, findRecord: record, now: wallClock });

/** What services stand on. */
interface ServicesOptions {
  contextServices: ContextServices;
  mask: SecretMask;
  scope: LifetimeScope;
  publicUrl: () => string;
  /** Of the current config; absent: this process has no admin listener. */
  adminConfig?: AdminPrincipalsOptions["adminConfig"];
  /** May still be on its way. */
  store: Store | Promise<Store>;
  /** Whether the store is on its way to another process. */
  isTransferring?: () => boolean;
  /** What this gateway says of itself to a store that it shares with others. */
  instanceInfo?: (() => InstanceInfo | undefined) | undefined;
  /** As another process tells of them; without them our own. */
  accountCache?: AccountCache;
  /** Another process's; without them our own, in the state folder. */
  modelLists?: ModelLists;
  /** The process that knows of Idempotency-Keys; without it this one does. */
  idempotency?: IdempotencyRegistry;
  /** Where the observers are, when not in this process. */
  observerSink?: ObserverSink;
  /** Of a process that borrows its store: what the owner says, and how the owner learns that no row gets through. */
  remoteStoreState?: {
    readonly ledgerAvailability: LedgerAvailability;
    onFailure(why: string): void;
  };
}

/** The process that owns the store tells of it; a worker only carries what it was answered. */
function attachStore(services: { -readonly [K in keyof Services]: Services[K] }, worker: boolean) {
  const { store, observerSink, commitDurations, log } = services;
  if (worker) services.storeWriter = store;
  else {
    services.thresholds = new ThresholdDelivery(store, observerSink, log);
    services.storeWriter = withCommitReports(
      store,
      observerSink,
      commitDurations,
      services.thresholds,
    );
  }
}

/** Gateways on one store sign with one key, so that each knows an address that another has given out, and finds the file there. */
async function openSharedFileStore(
  { stateDir, files: limits }: Pick<GatewayConfig, "stateDir" | "files">,
  services: { -readonly [K in keyof Services]: Services[K] },
  scope: LifetimeScope,
): Promise<void> {
  const dir = join(stateDir, "files");
  const { store, instanceId } = services;
  services.fleetSecret = await agreeOnSigningKey(dir, store);
  services.peerGateways = new PeerGateways(
    store.lease ? store : {},
    instanceId ?? "",
    services.fleetSecret,
  );
  const files = await openFileStore(dir, {
    ...limits,
    fetchFromPeers: async (name, query) => {
      const found = await services.pluginPeers.ask(FILES_TOPIC, { name, query });
      return typeof found === "string" ? Buffer.from(found, "base64") : undefined;
    },
  });
  services.fileStore = files;
  services.pluginPeers.register(scope, FILES_TOPIC, async ({ name, query }: PeerFileRequest) =>
    files.serve(name, new URLSearchParams(query), true).then(
      ({ body }) => body.toString("base64"),
      () => undefined,
    ),
  );
  scope.every(
    FILE_SWEEP_MS,
    () => files.sweep(),
    (error) => services.log.error({ err: error }, "old files could not be removed"),
  );
}

/** A question of its own among those of plugins. */
const FILES_TOPIC = "files";
interface PeerFileRequest {
  readonly name: string;
  readonly query: string;
}

/** The log and observers are told once when the ledger fails and once when it is back. */
function reportLedgerAvailability({
  ledgerAvailability,
  log,
  observerSink,
}: Pick<Services, "ledgerAvailability" | "log" | "observerSink">) {
  let down = false;
  ledgerAvailability.onChange((trouble) => {
    if (down === (trouble !== undefined)) return;
    down = trouble !== undefined;
    if (trouble)
      log.error({ trouble: trouble.reason }, "ledger unavailable; new calls are refused");
    else log.info({}, "ledger recovered");
    observerSink.reportEvent({ type: "ledger", at: wallClock(), ok: !down });
  });
}

/** Everything that is there once per process; `scope` ends it in reverse order. */
export async function openServices(
  config: GatewayConfig,
  options: ServicesOptions,
): Promise<Services> {
  const { contextServices, mask, scope } = options;
  const { log } = contextServices;
  const remembered = options.observerSink
    ? undefined
    : await createRequestHistory({
        most: config.requestHistory,
        stateDir: config.stateDir,
        log,
        scope,
      });
  const observing = options.observerSink ?? createObserverHub(log, remembered, scope);
  const services = {
    ...contextServices,
    mask,
    observerSink: observing,
    requestHistory: remembered,
    adminPrincipals:
      options.adminConfig &&
      createAdminPrincipals(options.adminConfig, (digest) => services.store.findKey(digest)),
    targetHealth: new TargetHealth({
      onCooldown: (rest) =>
        observing.reportEvent({ type: "cooldown_started", at: wallClock(), ...rest }),
      onRecovery: (what) =>
        observing.reportEvent({ type: "cooldown_ended", at: wallClock(), ...what }),
    }),
    hookBreakers: createHookBreakers(observing),
    rejections: new RejectionCounter(),
    inFlightRequests: new InFlightRequests(),
    commitDurations: new DurationRecorder(),
    ledgerAvailability: options.remoteStoreState?.ledgerAvailability ?? new LedgerAvailability(),
    retiringModels: new RetiringModels(log),
    logThrottle: scope.own(new LogThrottle()),
    outputHistory: createOutputHistory(),
    timerWheel: scope.own(new TimerWheel()),
    admissionQueue: new AdmissionQueue(config.overload, scope.own(new LoadMonitor()), (load) =>
      log.warn({ ...load }, "requests were refused: there is more to do than can be done"),
    ),
    memoryBudget: new MemoryBudget(config.bounds.inFlightBytes),
    concurrencyCounter: new ConcurrencyCounter(),
    idempotency: options.idempotency ?? new InMemoryIdempotencyRegistry(),
    accountCache: options.accountCache ?? new AccountCache(),
    pools: scope.own(new ConnectionPools(config.proxy)),
    modelLists: options.modelLists ?? (await openModelLists(join(config.stateDir, "catalog"))),
  } as { -readonly [K in keyof Services]: Services[K] };
  scope.defer(() => services.modelLists.whenSaved());
  const abroad = scope.own(createDownloader());
  services.imageFiles = {
    store: async (bytes, mime, who) => {
      const { path } = await services.fileStore.store(bytes, mime ?? "image/png", undefined, who);
      return `${options.publicUrl().replace(/\/+$/, "")}${path}`;
    },
    fetch: (url, signal, own) => abroad.get(url, signal, { trustedOrigin: own }),
  };
  answerListRequests(services, scope);
  services.store = await options.store;
  await openSharedFileStore(config, services, scope);
  await services.accountCache.load(services.store);
  attachStore(services, options.observerSink !== undefined);
  services.ledgerQueue = createLedgerQueue(services.storeWriter, {
    instanceInfo: options.instanceInfo,
    isTransferring: options.isTransferring,
    onFailureChange(trouble) {
      if (!options.remoteStoreState)
        services.ledgerAvailability.set(trouble && { since: wallClock(), ...trouble });
      else if (trouble) options.remoteStoreState.onFailure(trouble.reason);
    },
  });
  if (!options.remoteStoreState) reportLedgerAvailability(services);
  scope.defer(() => services.ledgerQueue.close());
  services.keyCache = createKeyCache(services.store, {
    away: () => services.ledgerQueue.isUnreachable,
  });
  services.usageQueries = withQueryLimits(
    services.store,
    createQueryLimiter(USAGE_QUERY_TIMEOUT_MS),
  );
  return services;
}
