// Sets up the middleware and observers of gateway.yaml.
import type { GatewayConfig, MountConfig } from "../../config/gateway-config.ts";
import type { Route } from "../../plugin/frontend.ts";
import { HOOK_COMBINATIONS, type MiddlewareExtras } from "../../plugin/middleware.ts";
import type { Observer } from "../../plugin/observer.ts";
import type { MountedMiddleware } from "../../pipeline/hooks/hook-runner.ts";
import type { MountedFrontend } from "../../pipeline/exchange/mounted.ts";
import { SKIPPABLE_HOOKS } from "../../pipeline/hooks/hook-guard.ts";
import type { MountedObserver } from "../observers/observer-subscriber.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import type { PluginSetup } from "../plugin-host/plugin-setup.ts";
import type { PluginRouteTable } from "./plugin-routes.ts";

export interface MountedMiddlewares {
  readonly middleware: readonly MountedMiddleware[];
  /** One frontend for each middleware that has routes on the public port. */
  readonly frontends: readonly MountedFrontend[];
}

export async function mountMiddleware(
  config: GatewayConfig,
  setup: PluginSetup,
  served: PluginRouteTable,
): Promise<MountedMiddlewares> {
  const middleware: MountedMiddleware[] = [];
  const serving: { mounted: MountConfig<any>; routes: readonly Route[] }[] = [];
  const { services } = setup;
  for (const mounted of config.middleware) {
    const hooks = await setup.setUp<MountedMiddleware["hooks"] & MiddlewareExtras>(mounted);
    if (!hooks) continue;
    if (!hasValidMembers(mounted, hooks, setup)) continue;
    checkScope(mounted, hooks, setup);
    const routes = served.register({
      mounted,
      routes: hooks.routes ?? [],
      defaultListener: "admin",
    });
    if (routes.length > 0) serving.push({ mounted, routes });
    checkOnError(mounted, hooks, setup);
    middleware.push({
      id: mounted.id,
      hooks,
      failurePolicy: {
        id: mounted.id,
        timeoutMs: mounted.timeoutMs,
        onError: mounted.onError,
        log: services.log,
        timerWheel: services.timerWheel,
        breakers: hookBreakersOf(mounted.id, hooks, setup),
      },
      sends: mounted.definition.sends,
      isPolicyTrusted: mounted.isBuiltIn || mounted.trustPolicy,
      scope: mounted.scope,
      needsFirstKey: hooks.needsFirstKey ?? false,
    });
  }
  // The `admit` hooks of all middleware apply to each of these routes, including hooks of later
  // middleware.
  const frontends = serving.map(({ mounted, routes }) =>
    served.toFrontend(mounted, routes, middleware),
  );
  return { middleware, frontends };
}

/**
 * Whether each member has the required type. Reports members that do not. Plugins in JavaScript get
 * no type errors: a truthy text would enable an option, and a hook that is not a function would
 * fail each request.
 */
function hasValidMembers(mounted: MountConfig<any>, members: object, setup: PluginSetup): boolean {
  const typeOf = (name: string): string => typeof (members as Record<string, unknown>)[name];
  const problems = HOOK_NAMES.filter(
    (hook) => !["undefined", "function"].includes(typeOf(hook)),
  ).map((hook) => `its ${hook} hook must be a function`);
  if (!["undefined", "boolean"].includes(typeOf("needsFirstKey")))
    problems.push("needsFirstKey must be true or false");
  for (const each of problems) setup.addMountProblem(mounted, each);
  return problems.length === 0;
}

const HOOK_NAMES = Object.keys(HOOK_COMBINATIONS) as (keyof typeof HOOK_COMBINATIONS)[];

/** Creates a hook breaker for each hook of the middleware. */
const hookBreakersOf = (id: string, hooks: MountedMiddleware["hooks"], setup: PluginSetup) =>
  Object.fromEntries(
    HOOK_NAMES.filter((hook) => hooks[hook]).map((hook) => [
      hook,
      setup.services.hookBreakers.create(id, hook, setup.scope),
    ]),
  );

/** Reports a problem if `for` filters by a value that is unknown when one of the hooks runs. */
function checkScope(
  mounted: MountConfig<any> & Pick<GatewayConfig["middleware"][number], "scope">,
  hooks: MountedMiddleware["hooks"],
  setup: PluginSetup,
): void {
  const early = (["admit", "edit", "rewrite", "inspect", "route"] as const).find(
    (hook) => hooks[hook],
  );
  if (early && mounted.scope?.providers)
    setup.addMountProblem(
      mounted,
      `its ${early} hook runs before a provider is chosen, so for.providers cannot limit it`,
    );
  if (hooks.admit && mounted.scope?.models)
    setup.addMountProblem(
      mounted,
      "its admit hook runs before the model is known, so for.models cannot limit it",
    );
}

/**
 * Reports a problem if `on_error: continue` has no effect. Hooks that decide on access, cost, or
 * outgoing bytes are never skipped.
 */
function checkOnError(
  mounted: GatewayConfig["middleware"][number],
  hooks: MountedMiddleware["hooks"],
  setup: PluginSetup,
): void {
  if (mounted.onError === "continue" && !SKIPPABLE_HOOKS.some((hook) => hooks[hook]))
    setup.addMountProblem(
      mounted,
      `none of its hooks can be skipped, so on_error: continue has no effect (hooks that can be skipped: ${SKIPPABLE_HOOKS.join(", ")})`,
    );
}

export async function mountObservers(
  config: GatewayConfig,
  setup: PluginSetup,
  served: PluginRouteTable,
  scope: LifetimeScope,
): Promise<MountedObserver[]> {
  const observers: MountedObserver[] = [];
  const only = {
    listener: "admin",
    why: "routes of observers are on the admin listener",
  } as const;
  for (const mounted of config.observers) {
    const observer = await setup.setUp<Observer>(mounted, scope);
    if (!observer) continue;
    checkClientAddresses(mounted, observer, setup);
    served.register({
      mounted,
      routes: observer.routes ?? [],
      defaultListener: "admin",
      requiredListener: only,
    });
    observers.push({
      id: mounted.id,
      observer,
      sends: mounted.definition.sends,
      breakerOf: (hook) => setup.services.hookBreakers.create(mounted.id, hook, setup.scope),
    });
  }
  return observers;
}

/**
 * Reports a problem if an observer that sends data to another machine requests full client
 * addresses, because they identify a person.
 */
function checkClientAddresses(
  mounted: GatewayConfig["observers"][number],
  { clientAddress }: Observer,
  setup: PluginSetup,
): void {
  const detail: unknown = clientAddress ?? "none";
  if (detail !== "none" && detail !== "prefix" && detail !== "full")
    setup.addMountProblem(
      mounted,
      `its level of client detail ${JSON.stringify(detail)} must be none, prefix, or full`,
    );
  else if (detail === "full" && mounted.definition.sends !== "nowhere")
    setup.addMountProblem(
      mounted,
      "it sends data to a third party and requests full client addresses",
    );
}
