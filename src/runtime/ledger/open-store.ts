// Sets up and opens the store of a config, like any plugin. The store exists before the gateway's
// other services, so it receives only the context services.
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { resolveNeeds } from "../../config/sections/plugin-needs.ts";
import { problem } from "../../config/problems.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { fail, getFault, publicErrorText } from "../../model/error.ts";
import { findUnknownSetupMember } from "../../plugin/known-members.ts";
import type { Logger } from "../../plugin/context.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { StoreEvent, StoreInstance } from "../../plugin/store/store-instance.ts";
import type { StoreSize } from "../../plugin/store/ledger-maintenance.ts";
import type { Store } from "../../plugin/store/store.ts";
import { createPluginContext } from "../plugin-host/plugin-context.ts";
import { withTimeout } from "./queued-command.ts";
import type { ContextServices } from "../services.ts";

export async function setUpStore(
  { store, file, bounds }: Pick<GatewayConfig, "store" | "file" | "bounds">,
  contextServices: ContextServices,
  scope: LifetimeScope,
): Promise<Store> {
  const catalog = () => fail("internal", "A store has no model catalog.");
  const needs = resolveNeeds(store.definition, store.options, {
    configFile: file,
    env: contextServices.env,
  });
  const ctx = createPluginContext({
    id: "store",
    scope,
    services: contextServices,
    needs,
    bounds,
    catalog,
  });
  const instance = await store.definition.setup(store.options, ctx);
  const stranger = findUnknownSetupMember("store", instance);
  if (stranger) {
    const { part, name, suggestion } = stranger;
    const { message, hint } = problem.unknownMember(store.use, part, name, suggestion);
    fail("invalid", hint === undefined ? message : `${message}; ${hint}`);
  }
  return instance as Store;
}

/**
 * Opens the store. `hear` is called with events from the store, such as changes by other instances.
 * `instance` is the ID of this process in the store.
 */
export async function openStore(
  config: Pick<GatewayConfig, "store" | "file" | "bounds">,
  contextServices: ContextServices,
  scope: LifetimeScope,
  {
    version,
    hear: onEvent,
    instance,
  }: { version: string; hear?: (news: StoreEvent) => void; instance?: string },
): Promise<Store> {
  const { log } = contextServices;
  const store = await setUpStore(config, contextServices, scope);
  const owner: StoreInstance = {
    instance: instance ?? crypto.randomUUID(),
    info: {
      version,
      host: hostname(),
      pid: process.pid,
      // Only a gateway has an instance ID before the store is opened.
      program: instance === undefined ? "command" : "gateway",
    },
  };
  const onStoreEvent = (news: StoreEvent): void => {
    try {
      logStoreEvent(log, news);
      onEvent?.(news);
    } catch (error) {
      log.error({ err: error }, "invalid store event");
    }
  };
  const { recovered } = await retryUntilOpen(store, () => store.open(owner, onStoreEvent), log);
  if (recovered > 0) log.warn({ recovered }, "calls left open by crash settled as estimated");
  if (!store.audit) log.warn({}, "store has no audit log, operator changes not recorded");
  return reopenWhenFenced(store, async () => {
    log.warn({ instance: owner.instance }, "gateway lease expired, reopening store");
    await store.open(owner, onStoreEvent);
  });
}

const BACKOFF_MS = { first: 100, last: 1_000 };

/**
 * Retries until the store opens. A shared store is a separate server and may start later than its
 * gateways. Without retries, an orchestrator would restart them repeatedly.
 */
async function retryUntilOpen<T>(
  { lease }: Pick<Store, "lease">,
  open: () => Promise<T>,
  log: Logger,
): Promise<T> {
  let lastLogged = "";
  for (let pause = BACKOFF_MS.first; ; pause = Math.min(BACKOFF_MS.last, pause * 2))
    try {
      return await open();
    } catch (error) {
      const kind = getFault(error)?.kind ?? "unavailable";
      if (!lease || kind !== "unavailable") throw error;
      // Repetitions of an error are not logged.
      const what = getFault(error)?.code ?? publicErrorText(error);
      if (what !== lastLogged)
        log.error({ err: error }, "store unavailable at startup, will retry");
      lastLogged = what;
      await sleep(pause);
    }
}

/**
 * Wraps a shared store. If the store fences this instance although it is alive, the store is opened
 * again and the command is repeated.
 */
function reopenWhenFenced(store: Store & Commands, open: () => Promise<void>): Store & Commands {
  if (!store.lease) return store;
  let opening: Promise<void> | undefined;
  /** Repeats the command after the store was reopened. */
  const fencing = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (getFault(error)?.code !== "fenced") throw error;
      await (opening ??= open().finally(() => (opening = undefined)));
      return work();
    }
  };
  const { audit } = store;
  return {
    lease: store.lease,
    commands: store.commands,
    open: (owner, hear) => store.open(owner, hear),
    apply: (batch) => fencing(() => store.apply(batch)),
    findKey: (digest) => store.findKey(digest),
    listKeys: (page) => store.listKeys(page),
    audit: audit && {
      begin: (entry) => fencing(() => audit.begin(entry)),
      end: (end) => fencing(() => audit.end(end)),
      list: (page) => audit.list(page),
    },
    listAccounts: store.listAccounts && ((page) => store.listAccounts!(page)),
    readLimits: store.readLimits && ((limits, at) => store.readLimits!(limits, at)),
    listEntries: (query, page, of) => store.listEntries(query, page, of),
    sumEntries: (query, of) => store.sumEntries(query, of),
    findPrice: store.findPrice && ((hash) => store.findPrice!(hash)),
    verify: store.verify && (() => store.verify!()),
    getOrCreateShared:
      store.getOrCreateShared && ((name, make) => store.getOrCreateShared!(name, make)),
    readSize: store.readSize && (() => store.readSize!()),
    listInstances: store.listInstances && (() => store.listInstances!()),
    thresholds: store.thresholds,
    jobs: store.jobs,
    supportsHandoff: store.supportsHandoff,
    maintenance: store.maintenance,
    transfer: store.transfer,
  } as Store & Commands;
}

function logStoreEvent(log: Logger, news: StoreEvent): void {
  const { type, ...fields } = news;
  if (type === "calls_recovered")
    log.warn(fields, "calls left open by another instance settled as estimated");
  if (type === "offline_started")
    log.error(fields, "store unreachable, serving from budget leases, rows spooled");
  if (type === "offline_ended") log.warn(fields, "store reachable again, spooled rows written");
  if (type === "spool_replayed")
    log.warn(fields, "rows spooled by earlier process written to store");
  if (type === "spool_failed") log.error(fields, "spooling to disk stopped");
  if (type === "unavailable") log.error(fields, "store unreachable, new calls rejected");
  if (type === "rows_lost") log.error(fields, "store lost ledger rows");
}

const SIZE_TIMEOUT_MS = 1_000;

/**
 * Returns the size of the store if it answers within 1 s. Live stats are reported without it
 * otherwise.
 */
export const readStoreSize = async (store: Store): Promise<StoreSize | undefined> =>
  store.readSize && withTimeout(SIZE_TIMEOUT_MS, store.readSize()).catch(() => undefined);

/**
 * Resolves when the store has answered. Rejects if it accepts no rows or does not answer within
 * `withinMs`.
 */
export async function assertLedgerAnswers(
  {
    ledgerQueue,
    store,
  }: {
    readonly ledgerQueue: { readonly isHealthy: boolean };
    readonly store: Pick<Store, "listEntries" | "lease">;
  },
  withinMs: number,
): Promise<void> {
  // A shared store is a separate server, so restarting this gateway would not help.
  if (store.lease) return;
  if (!ledgerQueue.isHealthy) fail("unavailable", "The ledger is closed.");
  const silent = sleep(withinMs, undefined, { ref: false }).then(() =>
    fail("unavailable", "The ledger does not respond."),
  );
  await Promise.race([store.listEntries({}, { limit: 1 }), silent]);
}
