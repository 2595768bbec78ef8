// Services that are independent of config generations: one set per process. A generation uses these
// services and owns all its other objects.
import { join } from "node:path";
import { wallClock } from "../lib/time/wall-clock.ts";
import { openModelLists, type ModelLists } from "../catalog/model-lists.ts";
import { PriceOverlay } from "../catalog/prices/price-overlay.ts";
import type { RouteResponse } from "../plugin/frontend.ts";
import type { HostExchange } from "../pipeline/exchange/exchange.ts";
import type { MountedSocket } from "../pipeline/exchange/mounted.ts";
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
import type { ImageFiles, IdempotencyRegistry } from "../pipeline/generation.ts";
import { TargetHealth } from "../pipeline/routing/target-health.ts";
import { AdmissionQueue } from "../pipeline/admission/admission-queue.ts";
import { MemoryBudget } from "../pipeline/admission/memory-budget.ts";
import { HookBreakers } from "../pipeline/hooks/hook-breaker.ts";
import { LoadMonitor } from "../pipeline/admission/load-monitor.ts";
import { ConcurrencyCounter } from "../pipeline/admission/request-permit.ts";
import { TimerWheel } from "../pipeline/admission/timer-wheel.ts";
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
import { jobEndedEvent, JobRegistry, withJobReports } from "./observers/job-reports.ts";
import { ObserverHub, type ObserverSink } from "./observers/observer-hub.ts";
import type { JobStore } from "../plugin/store/job.ts";
import type { Opt } from "../model/values.ts";
import { ThresholdDelivery } from "./observers/threshold-delivery.ts";
import { DurationRecorder } from "./services/duration-histogram.ts";
import { InFlightRequests } from "./requests/in-flight-requests.ts";
import { createRequestHistory, type RequestHistory } from "./requests/request-history.ts";
import type { LocalEndpoint } from "./http/local-endpoint.ts";
import { ConnectionPools } from "./plugin-host/connection-pools.ts";
import { RetiringModels } from "./services/retiring-models.ts";
import { PeerGateways, type PluginPeers } from "./services/peer-gateways.ts";
import { answerListRequests } from "./services/peer-model-lists.ts";

// Counts requests that are rejected before they reach a frontend, by error code. The codes are the
// gateway's own, so there are few.
class RejectionCounter {
  readonly #counts = new Map<string, number>();

  count(code: string): void {
    this.#counts.set(code, (this.#counts.get(code) ?? 0) + 1);
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}

// Wraps the store so that each commit is reported: thresholds that were reached, bills that are
// durable now, and the commit's duration. Every batch of every process is sent to the store through
// this wrapper, so each commit is reported once.
export const withCommitReports = (
  store: Pick<Store, "apply" | "lease">,
  sink: Pick<ObserverSink, "reportCommit">,
  commits: DurationRecorder,
  thresholds: Pick<ThresholdDelivery, "deliver">,
  keyChanges: KeyChanges = {},
): Pick<Store, "apply" | "lease"> => ({
  lease: store.lease,
  async apply(batch) {
    const began = performance.now();
    const verdicts = await store.apply(batch);
    commits.record(performance.now() - began);
    sink.reportCommit(batch, verdicts);
    for (const verdict of verdicts)
      if (verdict.ok && verdict.thresholds) thresholds.deliver(verdict.thresholds);
    if (batch.some((command) => command.do === "key")) keyChanges.notify?.();
    return verdicts;
  },
});

/** Called after a batch has changed keys. A plugin of any process may have sent it. */
export interface KeyChanges {
  notify?: () => void;
}

const FILE_SWEEP_MS = 60_000;
/**
 * Timeout of a usage query, in milliseconds. A report may take longer than a lookup, but a client
 * waits for it.
 */
const USAGE_QUERY_TIMEOUT_MS = 15_000;

export interface Services {
  readonly log: Log;
  readonly mask: SecretMask;
  readonly shared: SharedResources;
  readonly pools: ConnectionPools;
  readonly store: Store;
  /** Records of jobs. The ends of jobs are reported. Undefined if the store keeps none. */
  readonly jobs?: Opt<JobStore>;
  /** Functions of the mounted frontends for jobs. */
  readonly jobRegistry: JobRegistry;
  /** Write access to the store. Commits are reported to the observers. */
  readonly storeWriter: Pick<Store, "apply" | "lease">;
  readonly ledgerQueue: LedgerQueue;
  /** Whether the ledger accepts rows, as reported by the process that owns the store. */
  readonly ledgerAvailability: LedgerAvailability;
  /** The store's read queries for clients. */
  readonly usageQueries: Pick<Store, "listEntries" | "sumEntries" | "readLimits">;
  readonly keyCache: KeyCache;
  /** `notify` is set in the process that owns the store. */
  readonly keyChanges: KeyChanges;
  /** Accounts from the store. Accounts of gateway.yaml belong to each generation. */
  readonly accountCache: AccountCache;
  /** Principals of the admin listener. Set in the process that has it. */
  readonly adminPrincipals?: AdminPrincipals;
  /** Model lists that the providers reported. Every generation reads the current state. */
  readonly modelLists: ModelLists;
  /** Prices of the price feed. Every generation reads those that apply now. */
  readonly priceOverlay: PriceOverlay;
  /** Receives the records and events for observers. */
  readonly observerSink: ObserverSink;
  /** Finished requests. Set in the process that has the observers. */
  readonly requestHistory?: RequestHistory;
  readonly targetHealth: TargetHealth;
  /** State of the plugin hooks that are skipped for a while. */
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
  /** Secret with which gateways on the same store authenticate each other. */
  readonly fleetSecret: Uint8Array;
  /** Queries other gateways on the store for data that no process of this gateway has. */
  readonly peerGateways: Pick<PeerGateways, "askFirst" | "askAll">;
  /** Requests that were rejected before they reached a frontend. */
  readonly rejections: RejectionCounter;
  /** Sets up calls over WebRTC. `start` is set in a process that serves clients. */
  readonly calls?: {
    start?: (x: HostExchange, socket: MountedSocket, body: Buffer) => Promise<RouteResponse>;
  };
  /** Open requests of this process. */
  readonly inFlightRequests: InFlightRequests;
  /**
   * Delivers reached thresholds, as the store reports them. Set in the process that owns the store.
   */
  readonly thresholds?: ThresholdDelivery;
  /** Commit time of each batch, in the process that owns the store. */
  readonly commitDurations: DurationRecorder;
  /** Returns the live stats of all processes. */
  readonly stats: () => Promise<GatewayStats>;
  /**
   * Returns the address at which this process serves local calls. Throws before the process serves
   * requests.
   */
  readonly localEndpoint: () => LocalEndpoint;
  /** ID of this gateway in a shared store. Set in the process that opens the store. */
  readonly instanceId?: string;
  readonly stateDir: string;
  /** Proxy for outgoing calls. If unset, connections are direct. */
  readonly proxy?: ProxyConfig | undefined;
  /** Environment of the process. A plugin can read only the variables that it declares. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Services that exist before the store is opened, because the store needs them. */
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

/**
 * Creates the hub of the observers. The request history receives records like any observer, across
 * all generations.
 */
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

/** Dependencies of the services. */
interface ServicesOptions {
  contextServices: ContextServices;
  mask: SecretMask;
  scope: LifetimeScope;
  publicUrl: () => string;
  /**
   * Returns the admin section of the current config. Unset in a process without an admin listener.
   */
  adminConfig?: AdminPrincipalsOptions["adminConfig"];
  /** The store may still be opening. */
  store: Store | Promise<Store>;
  /** Whether the store is being handed to another process. */
  isTransferring?: () => boolean;
  /** Returns the description of this gateway for a store that it shares with others. */
  instanceInfo?: (() => InstanceInfo | undefined) | undefined;
  /** Accounts that another process maintains. If unset, this process creates its own. */
  accountCache?: AccountCache;
  /**
   * Model lists of another process. If unset, this process keeps separate model lists in the state directory.
   */
  modelLists?: ModelLists;
  /** Prices that another process maintains. If unset, this process creates its own. */
  priceOverlay?: PriceOverlay;
  /** Registry of idempotency keys in another process. If unset, this process creates its own. */
  idempotency?: IdempotencyRegistry;
  /** Sink for observers that run in another process. */
  observerSink?: ObserverSink;
  /**
   * Set in a process that uses the store of another process: the availability that the owner
   * reports, and a callback that notifies the owner when the store accepts no rows.
   */
  remoteStoreState?: {
    readonly ledgerAvailability: LedgerAvailability;
    onFailure(why: string): void;
  };
}

/**
 * Connects the services to the store. Only the process that owns the store reports commits. A
 * worker forwards the responses.
 */
function attachStore(services: Writable<Services>, worker: boolean) {
  const { store, observerSink, commitDurations, log } = services;
  if (worker) {
    services.storeWriter = store;
    services.jobs = store.jobs;
  } else {
    services.jobs =
      store.jobs &&
      withJobReports(store.jobs, services.jobRegistry, (job) =>
        observerSink.reportEvent(jobEndedEvent(job)),
      );
    services.thresholds = new ThresholdDelivery(store, observerSink, log);
    services.storeWriter = withCommitReports(
      store,
      observerSink,
      commitDurations,
      services.thresholds,
      services.keyChanges,
    );
  }
}

/**
 * Opens the file store. Gateways on one store sign with the same key, so each gateway recognizes
 * URLs of the others and can fetch the file from them.
 */
async function openSharedFileStore(
  { stateDir, files: limits }: Pick<GatewayConfig, "stateDir" | "files">,
  services: Writable<Services>,
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
    (error) => services.log.error({ err: error }, "removing old files failed"),
  );
}

/** Topic of the gateway's own messages on the channel that plugins use between gateways. */
const FILES_TOPIC = "files";
interface PeerFileRequest {
  readonly name: string;
  readonly query: string;
}

/** Logs and reports to observers once when the ledger fails and once when it recovers. */
function reportLedgerAvailability({
  ledgerAvailability,
  log,
  observerSink,
}: Pick<Services, "ledgerAvailability" | "log" | "observerSink">) {
  let down = false;
  ledgerAvailability.onChange((trouble) => {
    if (down === (trouble !== undefined)) return;
    down = trouble !== undefined;
    if (trouble) log.error({ trouble: trouble.reason }, "ledger unavailable, new calls rejected");
    else log.info({}, "ledger recovered");
    observerSink.reportEvent({ type: "ledger", at: wallClock(), ok: !down });
  });
}

/** Services that exist once the store is open. */
type StoreServices = Pick<
  Services,
  | "store"
  | "storeWriter"
  | "ledgerQueue"
  | "usageQueries"
  | "keyCache"
  | "imageFiles"
  | "fileStore"
  | "fleetSecret"
  | "peerGateways"
>;
type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Services that depend on the process, and those that replace a default. */
type GivenServices = ContextServices &
  Pick<Services, "mask" | "modelLists"> &
  Partial<Omit<Services, keyof StoreServices>>;

type ServicesConfig = Pick<GatewayConfig, "overload" | "proxy"> & {
  readonly bounds: Pick<GatewayConfig["bounds"], "inFlightBytes">;
};

/**
 * Creates the services of a process. A service that is passed in `options` is not created. The
 * services of the store are passed either all together, as in a dry run, or not at all. If they are
 * not passed, `openServices` adds them. `scope` closes the created services.
 */
export function createServices(
  config: ServicesConfig,
  scope: LifetimeScope,
  given: GivenServices & StoreServices,
): Services;
export function createServices(
  config: ServicesConfig,
  scope: LifetimeScope,
  given: GivenServices & { readonly [K in keyof StoreServices]?: never },
): Writable<Omit<Services, keyof StoreServices>>;
export function createServices(
  config: ServicesConfig,
  scope: LifetimeScope,
  given: GivenServices,
): Writable<Omit<Services, keyof StoreServices>> {
  const { log } = given;
  const {
    observerSink = createObserverHub(log, given.requestHistory, scope),
    targetHealth = new TargetHealth({
      onCooldown: (cooldown) =>
        observerSink.reportEvent({ type: "cooldown_started", at: wallClock(), ...cooldown }),
      onRecovery: (target) =>
        observerSink.reportEvent({ type: "cooldown_ended", at: wallClock(), ...target }),
    }),
    hookBreakers = createHookBreakers(observerSink),
    rejections = new RejectionCounter(),
    jobRegistry = new JobRegistry(),
    inFlightRequests = new InFlightRequests(),
    commitDurations = new DurationRecorder(),
    ledgerAvailability = new LedgerAvailability(),
    retiringModels = new RetiringModels(log),
    logThrottle = scope.own(new LogThrottle()),
    outputHistory = createOutputHistory(),
    timerWheel = scope.own(new TimerWheel()),
    admissionQueue = new AdmissionQueue(config.overload, scope.own(new LoadMonitor()), (load) =>
      log.warn({ ...load }, "requests rejected: gateway overloaded"),
    ),
    memoryBudget = new MemoryBudget(config.bounds.inFlightBytes),
    concurrencyCounter = new ConcurrencyCounter(),
    idempotency = new InMemoryIdempotencyRegistry(),
    accountCache = new AccountCache(),
    priceOverlay = scope.own(new PriceOverlay()),
    pools = scope.own(new ConnectionPools(config.proxy)),
  } = given;
  return {
    ...given,
    observerSink,
    targetHealth,
    hookBreakers,
    rejections,
    jobRegistry,
    calls: {},
    keyChanges: {},
    inFlightRequests,
    commitDurations,
    ledgerAvailability,
    retiringModels,
    logThrottle,
    outputHistory,
    timerWheel,
    admissionQueue,
    memoryBudget,
    concurrencyCounter,
    idempotency,
    accountCache,
    priceOverlay,
    pools,
  };
}

/** Opens all services of the process. `scope` closes them in reverse order. */
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
  const { observerSink, idempotency, accountCache, priceOverlay, adminConfig } = options;
  // The services of the store are added below.
  const services = createServices(config, scope, {
    ...contextServices,
    mask,
    modelLists: options.modelLists ?? (await openModelLists(join(config.stateDir, "catalog"))),
    ...(remembered && { requestHistory: remembered }),
    ...(observerSink && { observerSink }),
    ...(idempotency && { idempotency }),
    ...(accountCache && { accountCache }),
    ...(priceOverlay && { priceOverlay }),
    ...(adminConfig && {
      adminPrincipals: createAdminPrincipals(adminConfig, (digest) =>
        services.store.findKey(digest),
      ),
    }),
    ...(options.remoteStoreState && {
      ledgerAvailability: options.remoteStoreState.ledgerAvailability,
    }),
  }) as Writable<Services>;
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
