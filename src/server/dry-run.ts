// Gives commands a config generation that serves no clients, or only the store, while no gateway is
// running. A dry run changes nothing in the state directory and sends no request to providers.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInMemoryModelLists, openModelLists } from "../catalog/model-lists.ts";
import { PriceOverlay } from "../catalog/prices/price-overlay.ts";
import { readPriceBook } from "../runtime/services/price-feed.ts";
import type { ListSource } from "../catalog/list-refresher.ts";
import { EMPTY_SCHEMA, type Schema } from "../config/schema-dialect.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { problem } from "../config/problems.ts";
import { listSecrets } from "../config/show-config.ts";
import type { ListenTls } from "../config/sections/network-config.ts";
import type { GatewayConfig, LocatedProblem } from "../config/gateway-config.ts";
import type { Log } from "../lib/log/log.ts";
import type { SecretMask } from "../lib/log/secret-mask.ts";
import { LifetimeScope, SharedResources } from "../lib/lifetime-scope.ts";
import { fail, publicErrorText } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { Commands } from "../plugin/plugin.ts";
import type { Store } from "../plugin/store/store.ts";
import { validateInput, withInputChecks } from "../admin/dispatch/command-input.ts";
import { explainRequest } from "../admin/commands/explanation.ts";
import { openFileStore } from "../runtime/services/image-file-store.ts";
import { buildGeneration, type BuiltGeneration } from "../runtime/generation/build-generation.ts";
import { listSourcesOf } from "../runtime/generation/list-sources.ts";
import { createServices, type Services } from "../runtime/services.ts";
import { createKeyCache } from "../runtime/services/key-cache.ts";
import { createLedgerQueue } from "../runtime/ledger/ledger-queue.ts";
import { createModelCommands } from "../admin/commands/model-commands.ts";
import {
  type MountedState,
  pluginCommandSource,
  createPluginsCommand,
} from "../admin/commands/plugin-commands.ts";
import { createPolicyCommands } from "../admin/commands/policy-commands.ts";
import { findRetentionProblem } from "../runtime/ledger/ledger-retention.ts";
import { createStateDir } from "../runtime/services/state-dir.ts";
import { openStore as opened, setUpStore } from "../runtime/ledger/open-store.ts";
import { PeerGateways, createPluginPeers } from "../runtime/services/peer-gateways.ts";

export interface DryRunOptions {
  readonly loaded: LoadedConfig;
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly mask: SecretMask;
}

export interface DryRun extends AsyncDisposable {
  /** Problems that are not errors. */
  readonly warnings: readonly LocatedProblem[];
  /** The same commands as on the control socket of a running gateway. */
  readonly commands: ReturnType<typeof createDryRunCommands>;
  /**
   * Credentials of all providers that offer a model list. Fetching a model list is the only request
   * to a provider in a dry run.
   */
  readonly listSources: readonly ListSource[];
  readonly providers: BuiltGeneration["providers"];
}

/** Runs all steps up to and including every plugin's setup. */
export async function startDryRun(
  options: DryRunOptions,
): Promise<DryRun | { problems: readonly LocatedProblem[] }> {
  const { config, loaded } = options;
  const scope = new LifetimeScope();
  const stateDir = await mkdtemp(join(tmpdir(), "tollgate-rehearsal-"));
  scope.defer(() => rm(stateDir, { recursive: true, force: true }));
  const services = await createOfflineServices(options, scope, stateDir);
  const problems: LocatedProblem[] = [];
  const store = await setUpStore(config, services, scope).catch((error: unknown) => {
    problems.push(
      loaded.locate(
        "store",
        problem.setupFailed(config.store.use, options.mask.maskText(publicErrorText(error))),
      ),
    );
    return undefined;
  });
  const retentionProblem = store && findRetentionProblem(loaded, config, store);
  if (retentionProblem) problems.push(retentionProblem);
  problems.push(...(await findCertificateProblems(config, loaded.locate)));
  const built = await buildGeneration({
    number: 0,
    config,
    services,
    locate: loaded.locate,
    probesProviders: false,
  });
  if ("problems" in built) problems.push(...built.problems);
  else scope.defer(() => built.retire());
  if ("problems" in built || !store || problems.length > 0) {
    await scope[Symbol.asyncDispose]();
    return { problems };
  }
  return {
    warnings: built.warnings,
    commands: createDryRunCommands({ config, built, store, mask: options.mask, env: services.env }),
    listSources: listSourcesOf(built),
    providers: built.providers,
    [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose](),
  };
}

/** Returns problems of certificate files, which are otherwise read only at startup. */
async function findCertificateProblems(
  { listen, admin }: GatewayConfig,
  locate: LoadedConfig["locate"],
): Promise<readonly LocatedProblem[]> {
  const all = listen.flatMap(({ tls }): (readonly [string, ListenTls])[] =>
    tls ? [["listen", tls]] : [],
  );
  if (admin?.tls)
    all.push(["admin", { ...admin.tls, minVersion: "TLSv1.2", clientCertificates: undefined }]);
  if (all.length === 0) return [];
  const { loadTlsContext } = await import("../runtime/http/tls.ts");
  const found = await Promise.all(
    all.map(async ([section, tls]) =>
      loadTlsContext(tls, `${section}.tls`).then(
        () => [],
        (error: unknown) => [locate(section, problem.badCertificate(publicErrorText(error)))],
      ),
    ),
  );
  return found.flat();
}

/** The commands that need only a config generation. */
const createDryRunCommands = (mounts: MountedState) => {
  const { built, config } = mounts;
  return {
    ...withInputChecks({
      explain: async ({ model, frontend, key, privacy }) => {
        if (key !== undefined)
          fail("unavailable", "Keys can be looked up only in a running gateway.", {
            code: "not_running",
          });
        return explainRequest(built, config, model, { name: frontend, client: { privacy } });
      },
    }),
    ...createModelCommands(
      () => built,
      () => config.models,
    ),
    ...createPolicyCommands(() => built),
    ...createPluginsCommand(() => mounts),
  };
};

/**
 * Runs a plugin's command, "<plugin id>/<command>", directly on the store. Fails while a gateway is
 * using the store.
 */
export async function runOfflinePluginCommand(
  options: DryRunOptions,
  name: string,
  input: JsonObject,
): Promise<Json> {
  const early = await runBeforeOpen(options, name, input);
  if (early) return early.answer;
  await using opened = await openStoreOffline(options);
  const { store, services } = opened;
  const { config, mask, loaded } = options;
  const lived = { ...services, store, usageQueries: store, keyCache: createKeyCache(store) };
  const built = await buildGeneration({
    number: 0,
    config,
    services: lived,
    locate: loaded.locate,
    probesProviders: false,
  });
  if ("problems" in built)
    return fail(
      "invalid",
      built.problems.map(({ path, message }) => `${path}: ${message}`).join("; "),
    );
  try {
    const mounts = (): MountedState => ({ config, built, store, mask, env: services.env });
    return (await pluginCommandSource(mounts).find(name)!.run(input)) as Json;
  } finally {
    await built.retire();
  }
}

/**
 * Runs a store command that works before the store is opened. Undefined if the command is not such
 * a command.
 */
async function runBeforeOpen(
  options: DryRunOptions,
  name: string,
  input: JsonObject,
): Promise<{ answer: Json } | undefined> {
  if (!name.startsWith("store/")) return undefined;
  const scope = new LifetimeScope();
  try {
    await createStateDir(options.config.stateDir);
    const services = await createOfflineServices(options, scope, options.config.stateDir);
    const { commands }: Store & Commands = await setUpStore(options.config, services, scope);
    const command = commands?.[name.slice("store/".length)];
    if (!command?.runsBeforeOpen) return undefined;
    const accepted = validateInput((command.input as Schema | undefined) ?? EMPTY_SCHEMA, input);
    return { answer: await command.run(accepted) };
  } finally {
    await scope[Symbol.asyncDispose]();
  }
}

/** Opens the store of a config. Fails while a gateway uses it. */
export async function openStoreOffline(
  options: DryRunOptions,
): Promise<{ store: Store; services: Services } & AsyncDisposable> {
  const scope = new LifetimeScope();
  try {
    await createStateDir(options.config.stateDir);
    const services = await createOfflineServices(options, scope, options.config.stateDir);
    const store = await opened(options.config, services, scope, { version: "" });
    return { store, services, [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose]() };
  } catch (error) {
    await scope[Symbol.asyncDispose]();
    throw error;
  }
}

/** Reads the saved prices of the price feed, but does not refresh them. */
async function openPriceOverlay(
  { prices, stateDir }: Pick<GatewayConfig, "prices" | "stateDir">,
  log: Log,
  scope: LifetimeScope,
): Promise<PriceOverlay> {
  const overlay = scope.own(new PriceOverlay());
  if (prices) overlay.set(await readPriceBook(join(stateDir, "prices"), prices.key!, log));
  return overlay;
}

/** Creates the services of a dry run: no calls, no keys, no writes. */
async function createOfflineServices(
  options: DryRunOptions,
  scope: LifetimeScope,
  stateDir: string,
): Promise<Services> {
  const { config, log, mask } = options;
  log.addSecrets(listSecrets(config));
  const idle = () => fail("unavailable", "No gateway is running.");
  const lists = join(config.stateDir, "catalog");
  const store: Store = {
    open: async () => idle(),
    apply: async () => idle(),
    findKey: async () => undefined,
    listKeys: async () => ({ items: [] }),
    listEntries: async () => ({ items: [] }),
    sumEntries: async () => [],
  };
  return createServices(config, scope, {
    log,
    mask,
    stateDir,
    proxy: config.proxy,
    env: process.env,
    shared: new SharedResources(),
    pluginPeers: createPluginPeers(),
    localEndpoint: () => idle(),
    stats: async () => idle(),
    store,
    storeWriter: store,
    ledgerQueue: createLedgerQueue(store),
    usageQueries: store,
    keyCache: createKeyCache(store),
    // Reads existing model lists, but does not create a directory for them.
    modelLists: existsSync(lists) ? await openModelLists(lists) : createInMemoryModelLists(),
    priceOverlay: await openPriceOverlay(config, log, scope),
    fileStore: await openFileStore(join(stateDir, "files")),
    fleetSecret: new Uint8Array(),
    peerGateways: new PeerGateways({}, "", new Uint8Array()),
    imageFiles: { store: async () => idle(), fetch: async () => idle() },
  });
}
