// Builds everything that depends on one version of the config. A generation is complete before it
// serves requests, and never changes afterwards. It ends when it has been replaced and its last
// exchange has ended.
import { hkdfSync } from "node:crypto";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { GatewayConfig, LocatedProblem } from "../../config/gateway-config.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { Json } from "../../model/values.ts";
import type { MountedMiddleware } from "../../pipeline/hooks/hook-runner.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { Generation } from "../../pipeline/generation.ts";
import type {
  MountedFrontend,
  MountedProvider,
  MountedRoute,
  SubrequestRoute,
  MountedSocket,
} from "../../pipeline/exchange/mounted.ts";
import { Accounts } from "../../pipeline/accounts/accounts.ts";
import { isClientCredential } from "../../pipeline/exchange/client-credential.ts";
import { Scopes } from "../../pipeline/scopes/scope-table.ts";
import { CandidateResolver } from "../../pipeline/routing/resolver.ts";
import type { JobHooks } from "../observers/job-reports.ts";
import type { Services } from "../services.ts";
import type { MountedObserver } from "../observers/observer-subscriber.ts";
import { createPathMatcher } from "../http/path-pattern.ts";
import { createGenerationCatalog } from "./generation-catalog.ts";
import { type MountedFrontends, mountFrontends } from "./mount-frontends.ts";
import { MountedOperations } from "./mounted-operations.ts";
import { mountMiddleware, mountObservers } from "./mount-middleware.ts";
import {
  type PluginCommands,
  PluginSetup,
  type ProblemLocator,
} from "../plugin-host/plugin-setup.ts";
import { fetchFor } from "../plugin-host/provider-client.ts";
import { mountProviders, checkReadiness } from "./mount-providers.ts";
import { checkInterchangeableModels } from "./interchangeable-models.ts";
import { PluginRouteTable } from "./plugin-routes.ts";
import type { InFlightRequests } from "../requests/in-flight-requests.ts";

export interface BuiltGeneration {
  readonly gen: Generation;
  readonly frontends: readonly MountedFrontend[];
  readonly sockets: readonly MountedSocket[];
  /** Functions of the frontends for jobs. */
  readonly jobs: JobHooks;
  /** Frontends of the admin listener, one per route. */
  readonly adminFrontends: readonly MountedFrontend[];
  /** Problems to log. The list contains no errors. */
  readonly warnings: readonly LocatedProblem[];
  readonly providers: ReadonlyMap<string, MountedProvider>;
  readonly middleware: readonly MountedMiddleware[];
  /** Observers. Empty in a process that does not run them. */
  readonly observers: readonly MountedObserver[];
  readonly commands: ReadonlyMap<string, PluginCommands>;
  readonly inFlight: () => number;
  /** Returns the number of open exchanges of one frontend. */
  readonly inFlightOfFrontend: (frontend: string) => number;
  /** Signals plugins that the generation is leaving. */
  signalLeave(): void;
  /**
   * Delivers the remaining records to the observers and closes them, because another process runs
   * them now.
   */
  closeObservers(): Promise<void>;
  /**
   * Retires the generation. Resolves when its last exchange has ended and everything in it is
   * closed.
   */
  retire(): Promise<void>;
}

export interface BuildGenerationOptions {
  readonly number: number;
  readonly config: GatewayConfig;
  readonly services: Services;
  readonly locate: ProblemLocator;
  /** Whether providers are probed for readiness. If false, no request is sent upstream. */
  readonly probesProviders?: boolean;
  /** Whether this process runs the observers. If false, another process runs them. */
  readonly ownsObservers?: boolean;
}

export async function buildGeneration(
  options: BuildGenerationOptions,
): Promise<BuiltGeneration | { problems: readonly LocatedProblem[] }> {
  const { config, services, probesProviders = true } = options;
  const scope = new LifetimeScope();
  const setup = new PluginSetup(scope, services, options.locate, config);
  const { problems, commands } = setup;

  const providers = await mountProviders(config, setup, probesProviders);
  const kinds = new MountedOperations();
  kinds.addProviders(providers);
  const catalog = scope.own(createGenerationCatalog(config, providers, services, kinds.operations));
  setup.catalog = catalog;
  const served = new PluginRouteTable(setup, services.adminPrincipals);
  const { middleware, frontends } = await mountMiddleware(config, setup, served);
  const watching = scope.own(new LifetimeScope());
  const observers =
    options.ownsObservers === false ? [] : await mountObservers(config, setup, served, watching);
  const mounted = await mountFrontends(config, setup, middleware, served);
  served.warnOfMissingListener(config);
  kinds.addFrontends(mounted.frontends);
  kinds.check(config, setup);
  checkInterchangeableModels(config, catalog, setup);
  if (!problems.some((p) => p.severity === "error") && probesProviders)
    problems.push(...(await checkReadiness(config, providers, services, scope, options.locate)));
  if (problems.some((p) => p.severity === "error")) {
    await disposeScope(scope, services, "closing an unused config generation failed");
    return { problems };
  }

  const inFlight = new InFlightCounter(services.inFlightRequests);
  const gen = createGeneration(options, { catalog, providers, mounted, inFlight });
  setup.generation = gen;
  const leave = () => {
    scope.beginClose();
    watching.beginClose();
  };
  return {
    gen,
    frontends: [...mounted.frontends, ...frontends],
    sockets: mounted.sockets,
    jobs: mounted.jobs,
    adminFrontends: served.adminFrontends,
    warnings: problems,
    providers,
    middleware,
    observers,
    commands,
    inFlight: () => inFlight.count,
    inFlightOfFrontend: (frontend) => inFlight.countOf(frontend),
    signalLeave: leave,
    async closeObservers() {
      await services.observerSink.detach(observers);
      await disposeScope(watching, services, "closing an observer failed");
    },
    async retire() {
      leave();
      await inFlight.whenIdle();
      await services.observerSink.detach(observers);
      await disposeScope(scope, services, "closing a config generation failed", {
        generation: options.number,
      });
    },
  };
}

/** Returns the interface of the generation that the request pipeline uses. */
function createGeneration(
  { number, config, services }: BuildGenerationOptions,
  made: {
    readonly catalog: Catalog;
    readonly providers: ReadonlyMap<string, MountedProvider>;
    readonly mounted: MountedFrontends;
    readonly inFlight: InFlightCounter;
  },
): Generation {
  const { catalog, providers, mounted, inFlight } = made;
  const { entryPaths } = mounted;
  const modelRoutes = modelRoutesOf(mounted.frontends);
  const handlerRoutes = handlerRoutesOf(mounted.frontends);
  const { models, unmountedProviders } = config;
  return {
    number,
    log: services.log,
    logThrottle: services.logThrottle,
    isStrict: config.strict,
    responseHeaders:
      config.responseHeaders.length > 0 ? new Set(config.responseHeaders) : undefined,
    maxBodyBytes: config.maxBodyBytes,
    maxJsonValues: config.bounds.jsonValues,
    maxResponseBytes: config.bounds.responseBytes,
    slowRequestMs: config.log.slowRequestMs,
    writeTimeoutMs: config.writeTimeoutMs,
    pingIntervalMs: config.pingIntervalMs,
    providers,
    resolver: new CandidateResolver({
      providers,
      unmounted: unmountedProviders,
      models,
      catalog,
      pathsByOperation: entryPaths,
      targetHealth: services.targetHealth,
      now: wallClock,
    }),
    catalog,
    accounts: new Accounts(config.accounts, services.accountCache),
    scopes: new Scopes(config.scopes.values(), scopeSecret(services)),
    ledger: services.ledgerQueue,
    targetHealth: services.targetHealth,
    retries: config.retries,
    retiringModels: services.retiringModels,
    acceptsClientCredentials: [...providers.values()].some(({ credentials }) =>
      credentials.some(isClientCredential),
    ),
    findRoute: (path) => modelRoutes.get(path),
    findSubrequestRoute(given) {
      const path = withoutTrailingSlash(given);
      const mounted = modelRoutes.get(path);
      return mounted ? { mounted, params: {} } : findHandlerRoute(handlerRoutes, path);
    },
    timerWheel: services.timerWheel,
    reportRequest:
      config.observers.length > 0 || config.requestHistory > 0
        ? (record) => services.observerSink.reportRequest(record)
        : undefined,
    idempotency: services.idempotency,
    memoryBudget: services.memoryBudget,
    admissionQueue: services.admissionQueue,
    concurrencyCounter: services.concurrencyCounter,
    outputHistory: services.outputHistory,
    imageFiles: services.imageFiles,
    createFetch: fetchFor,
    mask: (text) => services.mask.maskText(text),
    maskJson: (value) => services.mask.maskValue(value) as Json,
    retain(x: HostExchange) {
      return inFlight.enter(x);
    },
  };
}

/** A request may end its path with a slash, and its subrequests may have the same path. */
const withoutTrailingSlash = (path: string): string =>
  path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;

/** Returns the secret with which values of scopes are hashed. All gateways of a store share it. */
const scopeSecret = ({ fleetSecret }: Services): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", fleetSecret ?? "", "", "scopes", 32));

/** Returns the routes of models that a request with only a body can use. */
function modelRoutesOf(frontends: readonly MountedFrontend[]): ReadonlyMap<string, MountedRoute> {
  const found = new Map<string, MountedRoute>();
  for (const frontend of frontends)
    for (const route of frontend.routes)
      if (
        "actionType" in route &&
        route.actionType === "generate" &&
        route.method === "POST" &&
        !route.protocols
      )
        for (const path of [route.path].flat())
          if (!path.includes(":") && !found.has(path)) found.set(path, { frontend, route, path });
  return found;
}

interface HandlerRoute {
  readonly mounted: MountedRoute;
  readonly match: ReturnType<typeof createPathMatcher>;
}

/** Returns the routes that frontends handle themselves and that a request with only a body can use. */
function handlerRoutesOf(frontends: readonly MountedFrontend[]): readonly HandlerRoute[] {
  return frontends.flatMap((frontend) =>
    frontend.routes.flatMap((route) =>
      "handle" in route &&
      route.method === "POST" &&
      (route.body === "json" || route.body === "bytes")
        ? [route.path]
            .flat()
            .filter((path) => !path.includes("**"))
            .map((path) => ({ mounted: { frontend, route, path }, match: createPathMatcher(path) }))
        : [],
    ),
  );
}

function findHandlerRoute(
  routes: readonly HandlerRoute[],
  path: string,
): SubrequestRoute | undefined {
  for (const { mounted, match } of routes) {
    const params = match(path);
    if (params) return { mounted, params };
  }
  return undefined;
}

/**
 * Closes everything that the generation owns. If a plugin fails to close, the failure is logged,
 * and the remaining plugins are closed.
 */
const disposeScope = (
  scope: LifetimeScope,
  { log }: Services,
  message: string,
  more = {},
): Promise<void> =>
  scope[Symbol.asyncDispose]().catch((error: unknown) =>
    log.error({ ...more, err: error }, message),
  );

// Counts a generation's open exchanges by frontend. A retired generation ends when the count is
// zero.

class InFlightCounter {
  count = 0;
  readonly #underWay: InFlightRequests;
  #onIdle: (() => void) | undefined;
  /** Counts by frontend name. An entry is kept when its count is zero. */
  readonly #byFrontend = new Map<string, { count: number }>();

  /** @param underWay The open requests of all generations, which operators can list. */
  constructor(underWay: InFlightRequests) {
    this.#underWay = underWay;
  }

  /** Counts an exchange. Returns a function that ends the count. Calling it twice has no effect. */
  enter(x: HostExchange): () => void {
    const of = this.#entryOf(x.frontend);
    const place = this.#underWay.add(x);
    this.count++;
    of.count++;
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      this.#underWay.remove(place);
      of.count--;
      if (--this.count === 0) this.#onIdle?.();
    };
  }

  countOf(frontend: string): number {
    return this.#byFrontend.get(frontend)?.count ?? 0;
  }

  /** Resolves when all exchanges have ended. */
  async whenIdle(): Promise<void> {
    if (this.count > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  #entryOf(frontend: string): { count: number } {
    const known = this.#byFrontend.get(frontend);
    if (known) return known;
    const made = { count: 0 };
    this.#byFrontend.set(frontend, made);
    return made;
  }
}
