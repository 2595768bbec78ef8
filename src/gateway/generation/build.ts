// Everything built from one version of the config. It is whole before it serves, nothing in it changes afterwards, and
// it ends when it has been replaced and its last exchange is over.
import { wallClock } from "../../lib/wall-clock.ts";
import type { GatewayConfig, Located } from "../../config/types.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { Scope } from "../../lib/scope.ts";
import type { Json } from "../../model/values.ts";
import type { MountedMiddleware } from "../../walk/hooks.ts";
import type { HostExchange } from "../../walk/exchange.ts";
import type { Generation } from "../../walk/generation.ts";
import type { MountedFrontend, MountedProvider, MountedRoute } from "../../walk/mounted.ts";
import { Accounts } from "../../walk/accounts.ts";
import { CandidateResolver } from "../../walk/candidates/resolver.ts";
import type { Services } from "../services/services.ts";
import type { MountedObserver } from "../observers/subscriber.ts";
import { fillCatalogue } from "./catalogue.ts";
import { type MountedFrontends, mountFrontends } from "./frontends.ts";
import { MountedKinds } from "./kinds.ts";
import { InFlight } from "./in-flight.ts";
import { mountMiddleware, mountObservers } from "./middleware.ts";
import { type PluginCommands, PluginSetup, type ProblemLocator } from "./plugin-setup.ts";
import { fetchFor } from "./provider-access.ts";
import { mountProviders } from "./providers.ts";
import { ready } from "./ready.ts";
import { checkSameModels } from "./same-models.ts";
import { ServedRoutes } from "./served-routes.ts";

export interface BuiltGeneration {
  readonly gen: Generation;
  readonly frontends: readonly MountedFrontend[];
  /** Of the admin listener; a route each. */
  readonly admin: readonly MountedFrontend[];
  /** For the log: no errors. */
  readonly warnings: readonly Located[];
  readonly providers: ReadonlyMap<string, MountedProvider>;
  readonly middleware: readonly MountedMiddleware[];
  /** In the process that has them. */
  readonly observers: readonly MountedObserver[];
  readonly commands: ReadonlyMap<string, PluginCommands>;
  readonly inFlight: () => number;
  /** Of them, those of one frontend. */
  readonly inFlightOf: (frontend: string) => number;
  /** Signals plugins that it leaves. */
  leave(): void;
  /** Its observers get what is left for them, and end: another process has them. */
  endObservers(): Promise<void>;
  /** Leaves; resolves when its last exchange is over and everything in it has ended. */
  retire(): Promise<void>;
}

export interface BuildOptions {
  readonly number: number;
  readonly config: GatewayConfig;
  readonly services: Services;
  readonly place: ProblemLocator;
  /** False: providers are not asked whether they are ready, and no upstream hears of it. */
  readonly probe?: boolean;
  /** False: observers are in another process. */
  readonly observers?: boolean;
}

export async function build(
  of: BuildOptions,
): Promise<BuiltGeneration | { problems: readonly Located[] }> {
  const { config, services, probe = true } = of;
  const scope = new Scope();
  const setup = new PluginSetup(scope, services, of.place, config.file);
  const { problems, commands } = setup;

  const providers = await mountProviders(config, setup, probe);
  const kinds = new MountedKinds();
  kinds.ofProviders(providers);
  const catalogue = scope.own(fillCatalogue(config, providers, services, kinds.works));
  setup.catalogue = catalogue;
  const served = new ServedRoutes(setup, services.holders);
  const { middleware, frontends } = await mountMiddleware(config, setup, served);
  const watching = scope.own(new Scope());
  const observers =
    of.observers === false ? [] : await mountObservers(config, setup, served, watching);
  const mounted = await mountFrontends(config, setup, middleware, served);
  served.needListener(config);
  kinds.ofFrontends(mounted.frontends);
  kinds.check(config, setup);
  checkSameModels(config, catalogue, setup);
  if (!problems.some((p) => p.severity === "error") && probe)
    problems.push(...(await ready(config, providers, services, scope, of.place)));
  if (problems.some((p) => p.severity === "error")) {
    await end(scope, services, "a generation that was not used did not end well");
    return { problems };
  }

  const inFlight = new InFlight(services.underWay);
  const leave = () => {
    scope.leave();
    watching.leave();
  };
  return {
    gen: generation(of, { catalogue, providers, mounted, inFlight }),
    frontends: [...mounted.frontends, ...frontends],
    admin: served.admin,
    warnings: problems,
    providers,
    middleware,
    observers,
    commands,
    inFlight: () => inFlight.count,
    inFlightOf: (frontend) => inFlight.of(frontend),
    leave,
    async endObservers() {
      await services.observing.end(observers);
      await end(watching, services, "an observer did not end well");
    },
    async retire() {
      leave();
      await inFlight.over();
      await services.observing.end(observers);
      await end(scope, services, "a generation did not end well", { generation: of.number });
    },
  };
}

/** What the walk asks of a generation. */
function generation(
  { number, config, services }: BuildOptions,
  made: {
    readonly catalogue: Catalogue;
    readonly providers: ReadonlyMap<string, MountedProvider>;
    readonly mounted: MountedFrontends;
    readonly inFlight: InFlight;
  },
): Generation {
  const { catalogue, providers, mounted, inFlight } = made;
  const { doors } = mounted;
  const asked = askedAt(mounted.frontends);
  const { models, unmounted } = config;
  return {
    number,
    log: services.log,
    repeats: services.repeats,
    strict: config.strict,
    answerHeaders: config.answerHeaders.length > 0 ? new Set(config.answerHeaders) : undefined,
    maxBodyBytes: config.maxBodyBytes,
    maxValues: config.bounds.values,
    maxAnswerBytes: config.bounds.answerBytes,
    slowMs: config.log.slowMs,
    writeMs: config.writeMs,
    resolver: new CandidateResolver({
      providers,
      unmounted,
      models,
      catalogue,
      doors,
      targets: services.rests,
      now: wallClock,
    }),
    catalogue,
    accounts: new Accounts(config.accounts, services.accounts),
    ledger: services.ledger,
    rests: services.rests,
    attempts: config.attempts,
    retiring: services.retiring,
    door: (path) => asked.get(path),
    watchdog: services.watchdog,
    seen:
      config.observers.length > 0 || config.remember > 0
        ? (record) => services.observing.seen(record)
        : undefined,
    claims: services.claims,
    room: services.room,
    gate: services.gate,
    turnstile: services.turnstile,
    usual: services.usual,
    pictures: services.pictures,
    fetchFor,
    mask: (text) => services.mask.text(text),
    masked: (value) => services.mask.value(value) as Json,
    enter(x: HostExchange) {
      return inFlight.enter(x);
    },
  };
}

/** Where a request can be made with a body alone. */
function askedAt(frontends: readonly MountedFrontend[]): ReadonlyMap<string, MountedRoute> {
  const found = new Map<string, MountedRoute>();
  for (const frontend of frontends)
    for (const route of frontend.routes)
      if ("op" in route && route.op === "generate" && route.method === "POST" && !route.protocols)
        for (const path of [route.path].flat())
          if (!path.includes(":") && !found.has(path)) found.set(path, { frontend, route, path });
  return found;
}

/** Ends everything that the generation owns. A plugin that fails to end stops no other; the log says which. */
const end = (scope: Scope, { log }: Services, message: string, more = {}): Promise<void> =>
  scope[Symbol.asyncDispose]().catch((error: unknown) =>
    log.error({ ...more, err: error }, message),
  );
