// Middleware and observers of gateway.yaml, set up.
import type { GatewayConfig, MountConfig } from "../../config/types.ts";
import type { Route } from "../../plugin/frontend.ts";
import { HOOKS, type MiddlewareRoutes } from "../../plugin/middleware.ts";
import type { Observer } from "../../plugin/observer.ts";
import type { MountedMiddleware } from "../../walk/hooks.ts";
import type { MountedFrontend } from "../../walk/mounted.ts";
import { PASSABLE } from "../../walk/hook-failures.ts";
import type { MountedObserver } from "../observers/subscriber.ts";
import type { Scope } from "../../lib/scope.ts";
import type { PluginSetup } from "./plugin-setup.ts";
import type { ServedRoutes } from "./served-routes.ts";

export interface MountedMiddlewares {
  readonly middleware: readonly MountedMiddleware[];
  /** One for each middleware that serves routes on the public port. */
  readonly frontends: readonly MountedFrontend[];
}

export async function mountMiddleware(
  config: GatewayConfig,
  setup: PluginSetup,
  served: ServedRoutes,
): Promise<MountedMiddlewares> {
  const middleware: MountedMiddleware[] = [];
  const serving: { mounted: MountConfig<any>; routes: readonly Route[] }[] = [];
  const { services } = setup;
  for (const mounted of config.middleware) {
    const hooks = await setup.run<MountedMiddleware["hooks"] & MiddlewareRoutes>(mounted);
    if (!hooks) continue;
    checkNarrowing(mounted, hooks, setup);
    const routes = served.sorted({ mounted, routes: hooks.routes ?? [], usual: "admin" });
    if (routes.length > 0) serving.push({ mounted, routes });
    checkPassing(mounted, hooks, setup);
    middleware.push({
      id: mounted.id,
      hooks,
      tolerance: {
        id: mounted.id,
        timeoutMs: mounted.timeoutMs,
        onError: mounted.onError,
        log: services.log,
        watchdog: services.watchdog,
        conducts: conductsOf(mounted.id, hooks, setup),
      },
      sends: mounted.definition.sends,
      trusted: mounted.from === "built-in" || mounted.trustPolicy,
      for: mounted.for,
    });
  }
  // Each is admitted by all of them, those behind it too.
  const frontends = serving.map(({ mounted, routes }) =>
    served.asFrontend(mounted, routes, middleware),
  );
  return { middleware, frontends };
}

/** One for each hook that it has. */
const conductsOf = (id: string, hooks: MountedMiddleware["hooks"], setup: PluginSetup) =>
  Object.fromEntries(
    (Object.keys(HOOKS) as (keyof typeof HOOKS)[])
      .filter((hook) => hooks[hook])
      .map((hook) => [hook, setup.services.conducts.of(id, hook, setup.scope)]),
  );

/** `for` cannot ask for what is not known yet when a hook runs. */
function checkNarrowing(
  mounted: MountConfig<any> & Pick<GatewayConfig["middleware"][number], "for">,
  hooks: MountedMiddleware["hooks"],
  setup: PluginSetup,
): void {
  const early = (["admit", "edit", "rewrite", "inspect", "route"] as const).find(
    (hook) => hooks[hook],
  );
  if (early && mounted.for?.providers)
    setup.refuse(
      mounted,
      `its ${early} hook runs before a provider is chosen, so for.providers cannot narrow it`,
    );
  if (hooks.admit && mounted.for?.models)
    setup.refuse(
      mounted,
      "its admit hook runs before the model is known, so for.models cannot narrow it",
    );
}

/** Hooks that decide what a key may, what it costs and which bytes leave are never passed over. */
function checkPassing(
  mounted: GatewayConfig["middleware"][number],
  hooks: MountedMiddleware["hooks"],
  setup: PluginSetup,
): void {
  if (mounted.onError === "pass" && !PASSABLE.some((hook) => hooks[hook]))
    setup.refuse(
      mounted,
      `none of its hooks may be passed over, so on_error: pass changes nothing (${PASSABLE.join(", ")} may)`,
    );
}

export async function mountObservers(
  config: GatewayConfig,
  setup: PluginSetup,
  served: ServedRoutes,
  scope: Scope,
): Promise<MountedObserver[]> {
  const observers: MountedObserver[] = [];
  const only = { on: "admin", why: "an observer's routes are on the admin listener" } as const;
  for (const mounted of config.observers) {
    const observer = await setup.run<Observer>(mounted, scope);
    if (!observer) continue;
    checkClients(mounted, observer, setup);
    served.sorted({ mounted, routes: observer.routes ?? [], usual: "admin", only });
    observers.push({
      id: mounted.id,
      observer,
      sends: mounted.definition.sends,
      conduct: (hook) => setup.services.conducts.of(mounted.id, hook, setup.scope),
    });
  }
  return observers;
}

/** A whole address leads to a person, and leaves this machine with no observer. */
function checkClients(
  mounted: GatewayConfig["observers"][number],
  { clients }: Observer,
  setup: PluginSetup,
): void {
  const said: unknown = clients ?? "none";
  if (said !== "none" && said !== "prefix" && said !== "full")
    setup.refuse(mounted, `it asks for ${JSON.stringify(said)} of clients: none, prefix or full`);
  else if (said === "full" && mounted.definition.sends !== "nowhere")
    setup.refuse(
      mounted,
      "it sends what it is told elsewhere, and asks for clients' whole addresses",
    );
}
