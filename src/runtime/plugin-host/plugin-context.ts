import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { DeclaredNeeds } from "../../config/sections/plugin-needs.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { fail } from "../../model/error.ts";
import { readDeclaredFile } from "./declared-files.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Context } from "../../plugin/context.ts";
import { matchesPattern } from "../../catalog/pattern.ts";
import { markAsHookFailure } from "../../pipeline/hooks/hook-guard.ts";
import { runSubrequest } from "../../pipeline/pipeline.ts";
import type { ContextServices, Services } from "../services.ts";
import type { LocalEndpoint } from "../http/local-endpoint.ts";
import type { EffectivePolicy, ModelInfo } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import { calculateBill, isExact } from "../../money/price.ts";

// Creates the context of a plugin.
/**
 * Returns the cost of a usage at the model's price at time `at`, in nano-dollars. Returns null if
 * the price is unknown or lacks an item of the usage.
 */
function quoteCost(
  { info, policy }: { readonly info: ModelInfo; readonly policy: EffectivePolicy },
  usage: Usage,
  at: number,
): bigint | null {
  const { region } = policy;
  // With several regions, it is unknown which one will serve the call.
  const facts = region?.length === 1 ? { region: region[0] } : {};
  const bill = info.price && calculateBill(usage, info.price, { at, pricingAttributes: facts });
  return bill && isExact(bill) ? bill.nano : null;
}

export interface ContextOptions {
  /** Path in gateway.yaml. */
  id: string;
  scope: LifetimeScope;
  /**
   * The available services. A store is set up first, so it receives only services that do not need
   * a store.
   */
  services: ContextServices & Partial<Pick<Services, "keyCache" | "usageQueries">>;
  needs: DeclaredNeeds;
  /** Returns the generation's catalog. Available after its providers are mounted. */
  catalog: () => Catalog;
}

export function createPluginContext({
  id,
  scope,
  services,
  needs,
  catalog,
}: ContextOptions): Context {
  const log = services.log.child({ plugin: id });
  return {
    id,
    log,
    signal: scope.signal,
    own: (thing) => scope.own(thing),
    onDispose: (undo) => scope.defer(undo),
    runEvery: (ms, tick) =>
      scope.every(ms, tick, (error) => log.error({ err: error }, "background task failed")),
    shared: (key, create, end) => services.shared.acquire(scope, `${id}\n${key}`, create, end),
    createPeerQuery<Q, A>(answer: (question: Q) => A | undefined) {
      services.pluginPeers.register(scope, id, answer);
      return (question: Q) => services.pluginPeers.ask(id, question) as Promise<A | undefined>;
    },
    // Loaded on demand, because most plugins never fetch and the module loads slowly.
    fetch: async (to, init) => {
      const { createProviderClient } = await import("./provider-client.ts");
      const credential = { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined };
      const line = { credential, signal: scope.closed };
      const reached = isPath(to)
        ? { ...line, ...(await createLocalAccess(services.localEndpoint())) }
        : {
            ...line,
            reach: undefined,
            dispatcher: undefined,
            allowedOrigins: needs.origins,
            allowsMetadataService: needs.usesMetadataService,
            proxy: services.proxy,
          };
      return createProviderClient(reached)
        .fetch(to, init)
        .catch((problem: unknown) => {
          throw markAsHookFailure(problem);
        });
    },
    sendSubrequest: (request, of) => runSubrequest(id, request, of),
    keys: services.keyCache!,
    catalog: createCatalogView(catalog),
    quoteCost: (candidate, usage) => quoteCost(candidate, usage, wallClock()),
    ledger: {
      listEntries: (query, page, of) => services.usageQueries!.listEntries(query, page, of),
      sumEntries: (query, of) => services.usageQueries!.sumEntries(query, of),
      ...(services.usageQueries?.readLimits && {
        readLimits: (limits, at) => services.usageQueries!.readLimits!(limits, at),
      }),
    },
    stats: () => services.stats(),
    env: (name) =>
      needs.env.includes(name)
        ? services.env[name]
        : fail("internal", `This plugin does not declare the variable ${name} in needs.env.`, {
            code: "not_declared",
          }),
    readFile: (path) => readDeclaredFile(needs, path),
    stateDir() {
      const dir = join(services.stateDir, id.replace(/[^\w.-]/g, "_"));
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      return dir;
    },
  };
}

async function createLocalAccess(own: LocalEndpoint) {
  const { localAgentFor } = await import("./local-agent.ts");
  return {
    reach: { base: own.origin },
    dispatcher: localAgentFor(own),
    baseLabel: "This gateway's own port",
  };
}

/** Whether the target is a path. "//host" is a URL of another host. */
const isPath = (to: string | URL): boolean => typeof to === "string" && /^\/(?![/\\])/.test(to);

/** Returns the part of the catalog that a key may see. */
function createCatalogView(catalog: () => Catalog): Context["catalog"] {
  return {
    list: ({ identity, privacy, operation }) =>
      catalog().list({
        operation,
        privacy,
        isAllowed:
          identity?.models && ((id) => identity.models!.some((p) => matchesPattern(p, id))),
      }),
    find: (id) => catalog().listing(id),
    operations: () => catalog().operations,
  };
}
