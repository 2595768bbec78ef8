// Everything built from one version of the config. It is whole before it serves, nothing in it changes afterwards, and
// it ends when it has been replaced and its last exchange is over.
import { originsOf } from "../../config/origins.ts";
import { problem, type ProblemText } from "../../config/problems.ts";
import type { GatewayConfig, Located, MountConfig, ProviderConfig } from "../../config/types.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { Scope } from "../../lib/scope.ts";
import type { Kind } from "../../model/request.ts";
import type { Json } from "../../model/values.ts";
import type { Frontend } from "../../plugin/frontend.ts";
import { strangerMade } from "../../plugin/members.ts";
import type { Observer } from "../../plugin/observer.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { Provider } from "../../plugin/provider.ts";
import { compile, type MountedMiddleware } from "../../walk/hooks.ts";
import type { Generation, MountedFrontend, MountedProvider } from "../../walk/generation.ts";
import { CandidateResolver } from "../../walk/candidates/resolver.ts";
import { bearer } from "../http/bearer.ts";
import { createContext } from "./context.ts";
import type { Services } from "../services/services.ts";
import type { MountedObserver } from "../observers/audience.ts";
import { ready } from "./ready.ts";
import { fillCatalogue } from "./catalogue.ts";
import { mountEndpoint, validator } from "./mounting.ts";

const SETUP_MS = 10_000;
/** An update takes some time to reach everybody. */
const WARN_MS = 30 * 86_400_000;

export interface BuiltGeneration {
  readonly gen: Generation;
  readonly frontends: readonly MountedFrontend[];
  readonly providers: ReadonlyMap<string, MountedProvider>;
  readonly middleware: readonly MountedMiddleware[];
  /** In the process that has them. */
  readonly observers: readonly MountedObserver[];
  readonly commands: ReadonlyMap<string, NonNullable<Commands["commands"]>>;
  readonly inFlight: () => number;
  /** Signals plugins that it leaves; resolves when its last exchange is over and everything in it has ended. */
  retire(): Promise<void>;
}

/** A place in gateway.yaml for something that went wrong with what stands there. */
export type ProblemLocator = (id: string, words: ProblemText) => Located;

export async function build(of: {
  number: number;
  config: GatewayConfig;
  services: Services;
  place: ProblemLocator;
  /** False: providers are not asked whether they are ready, and nobody upstream hears of it. */
  probe?: boolean;
  /** False: observers are in another process. */
  observers?: boolean;
}): Promise<BuiltGeneration | { problems: readonly Located[] }> {
  const { config, services, place } = of;
  const scope = new Scope();
  const problems: Located[] = [];
  const commands = new Map<string, NonNullable<Commands["commands"]>>();
  const providers = new Map<string, MountedProvider>();
  let catalogue: (Catalogue & Disposable) | undefined;

  /** One plugin's setup, under a deadline, every failure at its own line. */
  const setup = async <T extends object>(
    mounted: MountConfig<any>,
  ): Promise<(T & Commands) | undefined> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), SETUP_MS);
    });
    try {
      const made = await Promise.race([
        Promise.resolve().then(() => {
          const origins = originsOf(mounted.definition, mounted.options);
          const { id } = mounted;
          const ctx = createContext({ id, scope, services, origins, catalogue: () => catalogue! });
          return mounted.definition.setup(mounted.options, ctx);
        }),
        late,
      ]);
      if (made === "late")
        problems.push(place(mounted.id, problem.setupSlow(mounted.use, SETUP_MS)));
      else {
        const stranger = strangerMade(mounted.definition["~tollgate"], made);
        if (stranger) {
          const { part, name, near } = stranger;
          problems.push(place(mounted.id, problem.unknownMember(mounted.use, part, name, near)));
        }
        if (made.commands) commands.set(mounted.id, made.commands);
        return made;
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      problems.push(place(mounted.id, problem.setupFailed(mounted.use, services.mask.text(why))));
    } finally {
      clearTimeout(timer);
    }
    return undefined;
  };

  for (const mounted of config.providers.values()) {
    const provider = await setup<Provider>(mounted);
    if (!provider) continue;
    const complain = (why: string) =>
      problems.push(place(mounted.id, problem.badDefinition(mounted.use, why)));
    const { expires } = mounted.definition.data ?? {};
    if (of.probe !== false && expires !== undefined && Date.parse(expires) < Date.now() + WARN_MS)
      services.log.warn(
        { provider: mounted.name, expires },
        "what is known of a provider's data policy ends, and is then unknown: Service-ZDR will refuse it",
      );
    providers.set(mounted.name, {
      name: mounted.name,
      provider,
      data: mounted.definition.data,
      exceptions: mounted.definition.exceptions ?? [],
      trusted: mounted.trustPolicy || (mounted.from === "built-in" && atHome(mounted)),
      state: mounted.state,
      zdrFields: mounted.zdrFields,
      onDisconnect: mounted.onDisconnect,
      timeouts: mounted.timeouts,
      endpoints: provider.endpoints.flatMap((endpoint) => {
        const built = mountEndpoint(endpoint, mounted.timeouts.connectMs, services, scope);
        if ("why" in built) complain(built.why);
        return "why" in built ? [] : [built];
      }),
      credentials: mounted.credentials,
      origins: originsOf(mounted.definition, mounted.options),
    });
  }

  catalogue = scope.own(fillCatalogue(config, providers, services));

  const middleware: MountedMiddleware[] = [];
  for (const mounted of config.middleware) {
    const hooks = await setup<MountedMiddleware["hooks"]>(mounted);
    if (!hooks) continue;
    const early = (["admit", "rewrite", "route"] as const).find((h) => hooks[h]);
    if (early && mounted.for?.providers)
      problems.push(
        place(
          mounted.id,
          problem.badDefinition(
            mounted.use,
            `its ${early} hook runs before a provider is chosen, so for.providers cannot narrow it`,
          ),
        ),
      );
    if (hooks.admit && mounted.for?.models)
      problems.push(
        place(
          mounted.id,
          problem.badDefinition(
            mounted.use,
            "its admit hook runs before the model is known, so for.models cannot narrow it",
          ),
        ),
      );
    middleware.push({
      id: mounted.id,
      hooks,
      sends: mounted.definition.sends,
      trusted: mounted.from === "built-in" || mounted.trustPolicy,
      for: mounted.for,
    });
  }

  const observers: MountedObserver[] = [];
  for (const mounted of of.observers === false ? [] : config.observers) {
    const observer = await setup<Observer>(mounted);
    if (observer) observers.push({ id: mounted.id, observer, sends: mounted.definition.sends });
  }

  const frontends: MountedFrontend[] = [];
  const doors = new Map<Kind, string>();
  const routes = new Map<string, string>();
  for (const mounted of config.frontends) {
    const frontend = await setup<Frontend>(mounted);
    if (!frontend) continue;
    const name = mounted.id.replace(/^frontends\./, "");
    const complain = (why: string) =>
      problems.push(place(mounted.id, problem.badDefinition(mounted.use, why)));
    for (const route of frontend.routes) {
      if ("op" in route && !frontend.protocol?.server)
        complain("it has a route to models, and its protocol has no server half");
      for (const path of [route.path].flat()) {
        const key = `${route.method} ${path}`;
        const other = routes.get(key);
        if (other !== undefined) complain(`${key} is served by ${other} already`);
        routes.set(key, name);
      }
      if (
        "op" in route &&
        route.op === "generate" &&
        frontend.protocol &&
        !doors.has(frontend.protocol.kind)
      )
        doors.set(frontend.protocol.kind, [route.path].flat()[0]!);
    }
    frontends.push({
      name,
      frontend,
      protocol: frontend.protocol,
      server: frontend.protocol?.server as MountedFrontend["server"],
      validate: validator(frontend.protocol?.server?.schema),
      secret: frontend.secret?.bind(frontend) ?? bearer,
      chain: compile(middleware, name),
    });
  }
  if (problems.length === 0 && of.probe !== false)
    problems.push(...(await ready(config, providers, services, scope, place)));
  if (problems.some((p) => p.severity === "error")) {
    await scope[Symbol.asyncDispose]().catch((error: unknown) =>
      services.log.error({ err: error }, "a generation that was not used did not end well"),
    );
    return { problems };
  }

  let inFlight = 0;
  let idle: (() => void) | undefined;
  const gen: Generation = {
    number: of.number,
    log: services.log,
    strict: config.strict,
    maxBodyBytes: config.maxBodyBytes,
    maxValues: config.bounds.values,
    maxAnswerBytes: config.bounds.answerBytes,
    slowMs: config.log.slowMs,
    resolver: new CandidateResolver({
      providers,
      unmounted: config.unmounted,
      models: config.models,
      catalogue,
      doors,
      now: Date.now,
    }),
    catalogue,
    ledger: services.ledger,
    rests: services.rests,
    retiring: services.retiring,
    watchdog: services.watchdog,
    seen: config.observers.length > 0 ? (record) => services.observing.seen(record) : undefined,
    room: services.room,
    turnstile: services.turnstile,
    usual: services.usual,
    pictures: services.pictures,
    mask: (text) => services.mask.text(text),
    masked: (value) => services.mask.value(value) as Json,
    enter() {
      inFlight++;
      let inside = true;
      return () => {
        if (!inside) return;
        inside = false;
        if (--inFlight === 0) idle?.();
      };
    },
  };
  return {
    gen,
    frontends,
    providers,
    middleware,
    observers,
    commands,
    inFlight: () => inFlight,
    async retire() {
      scope.leave();
      if (inFlight > 0) await new Promise<void>((resolve) => (idle = resolve));
      await services.observing.end(observers);
      await scope[Symbol.asyncDispose]().catch((error: unknown) =>
        services.log.error({ generation: of.number, err: error }, "a generation did not end well"),
      );
    },
  };
}

/** What is known of a provider's data policy is known of its own address: elsewhere somebody else listens. */
function atHome({ definition, options }: ProviderConfig): boolean {
  const usual = definition.options?.properties?.["base_url"]?.default;
  const given = (options as { base_url?: unknown }).base_url;
  if (typeof usual !== "string" || typeof given !== "string") return true;
  return URL.parse(given)?.origin === new URL(usual).origin;
}
