// Implements the commands of a running gateway.
import { getFault } from "../../model/error.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { ListRefresher } from "../../catalog/list-refresher.ts";
import type { ChangeBroadcast } from "../../runtime/change-broadcast.ts";
import { createGrantTargets, knownLedgerNames } from "../access/grants.ts";
import { createAttentionCommand, type AttentionOptions } from "./attention.ts";
import {
  createAdminCommands,
  createAuditCommands,
  createSessionCommands,
} from "./admin-commands.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import { createCommandAudit } from "../dispatch/command-audit.ts";
import { CommandDispatcher, AccessCounter } from "../dispatch/command-dispatcher.ts";
import { readAccountTree } from "../access/account-tree.ts";
import { listAllKeys } from "../../runtime/store-keys.ts";
import { createScopeDirectory, type ScopeDirectory } from "../dispatch/account-scoping.ts";
import type { CommandHandler } from "../socket/control-socket.ts";
import type { CommandName } from "../schema/command-specs.ts";
import type { Services } from "../../runtime/services.ts";
import { createMaintenanceCommands, requireErase } from "./maintenance-commands.ts";
import { accountCommands } from "./account-commands.ts";
import { identityOfKey, createKeyCommands } from "./key-commands.ts";
import { createRepositoryReads, type KeyRepository } from "../access/key-repository.ts";
import { createJobCommands } from "./job-commands.ts";
import { createLedgerCommands } from "./ledger-commands.ts";
import { createModelCommands, assertMounted } from "./model-commands.ts";
import { type MountedState, pluginCommandSource, createPluginsCommand } from "./plugin-commands.ts";
import { createPolicyCommands } from "./policy-commands.ts";
import { BudgetWatch, createForecastCommand, type ForecastOptions } from "./forecast.ts";
import { createPriceCommands } from "./price-commands.ts";
import { priceInForce, type PriceFeed } from "../../runtime/services/price-feed.ts";
import { createConfigCommands } from "./config-commands.ts";
import { createProviderCommands } from "./provider-commands.ts";
import { readAllLiveRequests } from "../../runtime/requests/in-flight-requests.ts";
import type { LiveGeneration } from "../../runtime/generation/generation-slot.ts";
import type { ConfigCommandsOptions } from "./config-commands.ts";
import { createRequestCommands } from "./request-commands.ts";
import { createScopeCommands, type ScopeCommandsOptions } from "./scope-commands.ts";
import { createSocketCommands } from "./socket-commands.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { Gateway } from "../../runtime/gateway-api.ts";
import type { OpenSockets } from "../../runtime/sockets/open-sockets.ts";
import type { WorkerPool } from "../../runtime/workers/worker-pool.ts";

export interface GatewayCommandsOptions {
  gateway: Gateway;
  services: Services;
  /** Informs all processes about changed keys and accounts. */
  changeBroadcast: ChangeBroadcast;
  /** Returns the other processes. */
  workerPool: () => Pick<WorkerPool, "call" | "statsSources" | "closeSocket"> | undefined;
  /** Returns the open WebSockets of this process. */
  openSockets: () => OpenSockets;
  listRefresher: ListRefresher;
  priceFeed: PriceFeed;
  /** Options that the gateway was started with. */
  options: Pick<ConfigCommandsOptions, "configFile" | "overrides" | "loadPlugin" | "isBuiltin"> & {
    readonly version: string;
  };
  currentGeneration: () => Pick<LiveGeneration, "built" | "config" | "loaded" | "loadedAt">;
}

/** Creates the dispatcher of all commands. */
export const createGatewayDispatcher = (options: GatewayCommandsOptions): CommandDispatcher => {
  const { gateway, services, changeBroadcast, listRefresher, currentGeneration } = options;
  const remembered = services.requestHistory!;
  const holders = services.adminPrincipals!;
  const built = () => currentGeneration().built;
  const listed = () =>
    built()
      .gen.catalog.list()
      .map(({ id }) => id);
  const mounts = (): MountedState => ({ ...currentGeneration(), ...services });
  const grantTargets = () =>
    createGrantTargets(currentGeneration().config, currentGeneration().loaded, listed());
  const repository = createKeyRepository(services, changeBroadcast);
  const accessCounter = new AccessCounter(wallClock);
  const directory = createScopeDirectory(services.store, currentGeneration);
  /** Removes erased texts from memory. */
  const forgetTexts = async (): Promise<void> => {
    remembered.recentRequests.redactTexts();
    await Promise.all([changeBroadcast.invalidateKeys(), changeBroadcast.reloadAccounts()]);
  };
  const commands: Record<CommandName, CommandHandler> = {
    ...withInputChecks({
      status: async () => gateway.status(),
      fleet: () => gateway.fleet(),
      stats: async () => services.stats(),
      reload: async () => gateway.reload("command"),
      explain: async ({ model, frontend, key, privacy }) => {
        const identity =
          key === undefined ? undefined : await identityOfKey(repository, key, wallClock());
        return gateway.explain(model, frontend, { identity, privacy });
      },
      /**
       * Refreshes the model lists of one or all providers, and returns when all providers have
       * responded. Without a provider, also refreshes the price feed, whose failure is part of the
       * status.
       */
      "models.refresh": async ({ provider }) => {
        await Promise.all([
          listRefresher.refreshNow(provider && assertMounted(built().providers, provider)),
          provider === undefined && options.priceFeed.refreshNow().catch(() => {}),
        ]);
        return gateway.status();
      },
    }),
    ...createAttentionCommand(
      attentionOptions(options, repository, () =>
        readAccountTree(repository, grantTargets().fileAccounts),
      ),
    ),
    ...createModelCommands(built, () => currentGeneration().config.models),
    ...createPriceCommands(priceOptions(options)),
    ...createPolicyCommands(built),
    ...createPluginsCommand(mounts),
    ...createLedgerCommands(
      services.store,
      (command) => services.ledgerQueue.adjust(command),
      () => knownLedgerNames(currentGeneration().config, services.accountCache, listed()),
    ),
    ...createForecastCommand(forecastOptions(options, repository, grantTargets)),
    ...createMaintenanceCommands(
      {
        store: services.store,
        use: currentGeneration().config.store.use,
        stateDir: services.stateDir,
        version: options.options.version,
      },
      forgetTexts,
    ),
    ...createScopeCommands(scopeOptions(options, repository, directory.accountPath, forgetTexts)),
    ...createConfigCommands({
      ...options.options,
      env: services.env,
      mask: services.mask,
      current: currentGeneration,
    }),
    ...createProviderCommands({
      current: built,
      services,
      gateway,
      workerPool: options.workerPool,
    }),
    ...createRequestCommands({
      store: services.store,
      running: {
        history: remembered,
        stats: services.stats,
        inFlightRequests: () =>
          readAllLiveRequests(
            services.inFlightRequests,
            options.workerPool()?.statsSources() ?? [],
          ),
      },
    }),
    ...createSocketCommands({
      store: services.store,
      own: options.openSockets,
      workerPool: options.workerPool,
    }),
    ...createJobCommands({
      store: services.store,
      kinds: () => built().jobs.kinds,
      accountPath: (account) => directory.accountPath(account),
    }),
    ...createAdminCommands({
      list: listAllKeys(services.store),
      write: repository.writeKey,
      fileConfig: () => currentGeneration().config.admin,
      readTree: () => readAccountTree(repository, grantTargets().fileAccounts),
      sessions: () => holders.sessions,
    }),
    ...createAuditCommands(services.store.audit, accessCounter),
    ...createSessionCommands(holders.sessions, () => gateway.adminUrl),
    ...createKeyCommands(repository, grantTargets),
    ...accountCommands(repository, grantTargets),
  };
  return new CommandDispatcher({
    commands,
    pluginCommands: pluginCommandSource(mounts),
    scopes: directory,
    audit: createCommandAudit(services),
    accessCounter,
  });
};

/** Creates the check of all budgets, which reports those that will be exhausted. */
export const createBudgetWatch = (options: GatewayCommandsOptions): BudgetWatch => {
  const { services, changeBroadcast, currentGeneration } = options;
  const targets = () => {
    const { config, loaded } = currentGeneration();
    return createGrantTargets(config, loaded, []);
  };
  return new BudgetWatch(
    forecastOptions(options, createKeyRepository(services, changeBroadcast), targets),
  );
};

/** Collects the sources of the forecast. */
const forecastOptions = (
  { services }: GatewayCommandsOptions,
  repository: KeyRepository,
  targets: () => ReturnType<typeof createGrantTargets>,
): ForecastOptions => ({
  store: services.store,
  repository,
  readTree: () => readAccountTree(repository, targets().fileAccounts),
});

/** Returns the options of the commands about scopes. */
const scopeOptions = (
  { services, currentGeneration }: GatewayCommandsOptions,
  repository: KeyRepository,
  accountPath: ScopeDirectory["accountPath"],
  forgetTexts: () => Promise<void>,
): ScopeCommandsOptions => ({
  store: services.store,
  scopes: () => currentGeneration().built.gen.scopes,
  identityOf: (key) =>
    identityOfKey(repository, key, wallClock()).catch((error: unknown) => {
      if (getFault(error)?.code === "no_such_key") return { id: key };
      throw error;
    }),
  listKeys: () => repository.listKeys(),
  listAccounts: () => repository.listAccounts(),
  accountPath: (account) => accountPath(account).join("/"),
  changeMember: (limits, change) => services.ledgerQueue.changeMember(limits, change),
  erase: async (what) => {
    const erase = requireErase(services.store, currentGeneration().config.store.use);
    const { hashes } = await erase(what);
    await forgetTexts();
    return hashes;
  },
  now: wallClock,
});

/** Collects the sources of the price commands. */
const priceOptions = ({
  priceFeed,
  services,
  currentGeneration,
}: GatewayCommandsOptions): Parameters<typeof createPriceCommands>[0] => ({
  feed: priceFeed,
  store: services.store,
  mountedAs: (plugin) =>
    [...currentGeneration().config.providers.values()]
      .filter(({ definition }) => definition.name === plugin)
      .map(({ name }) => name),
  currentPrice: (plugin, model) =>
    priceInForce(services.priceOverlay.book, currentGeneration().config, plugin, model),
});

/** Collects the sources of the attention list. */
const attentionOptions = (
  { gateway, services, currentGeneration }: GatewayCommandsOptions,
  repository: KeyRepository,
  tree: AttentionOptions["readTree"],
): AttentionOptions => ({
  status: () => gateway.status(),
  stats: () => services.stats(),
  requestStats: services.requestHistory!.requestStats,
  current: () => currentGeneration().built,
  modelNames: () => aliasesOf(currentGeneration().config),
  repository,
  readTree: tree,
});

const aliasesOf = ({ models }: GatewayConfig): ReadonlyMap<string, readonly string[]> =>
  new Map([...models].map(([name, { candidates }]) => [name, candidates]));

/** Creates the key repository. A change is first made durable and then sent to every process. */
const createKeyRepository = (
  { store, ledgerQueue, observerSink }: Pick<Services, "store" | "ledgerQueue" | "observerSink">,
  changes: ChangeBroadcast,
): KeyRepository => ({
  ...createRepositoryReads(store, wallClock),
  writeKey: (record) => ledgerQueue.writeKey(record).then(() => changes.invalidateKeys()),
  writeAccount: (record) =>
    ledgerQueue.writeAccount(record).then(() => changes.accountChanged(record)),
  writeOpening: ([reserve, settle]) =>
    ledgerQueue.reserve(reserve).then(() => ledgerQueue.settle(settle)),
  onChanged: (what, id) => {
    const at = wallClock();
    if (what.type === "key") observerSink.reportEvent({ ...what, at, key: id });
    else observerSink.reportEvent({ ...what, at, account: id });
  },
});
