// Middleware and observers of gateway.yaml, set up.
import type { GatewayConfig, MountConfig } from "../../config/types.ts";
import type { Observer } from "../../plugin/observer.ts";
import type { MountedMiddleware } from "../../walk/hooks.ts";
import type { MountedObserver } from "../observers/audience.ts";
import type { PluginSetup } from "./plugin-setup.ts";

export async function mountMiddleware(
  config: GatewayConfig,
  setup: PluginSetup,
): Promise<MountedMiddleware[]> {
  const middleware: MountedMiddleware[] = [];
  for (const mounted of config.middleware) {
    const hooks = await setup.run<MountedMiddleware["hooks"]>(mounted);
    if (!hooks) continue;
    checkNarrowing(mounted, hooks, setup);
    middleware.push({
      id: mounted.id,
      hooks,
      sends: mounted.definition.sends,
      trusted: mounted.from === "built-in" || mounted.trustPolicy,
      for: mounted.for,
    });
  }
  return middleware;
}

/** `for` cannot ask for what is not known yet when a hook runs. */
function checkNarrowing(
  mounted: MountConfig<any> & Pick<GatewayConfig["middleware"][number], "for">,
  hooks: MountedMiddleware["hooks"],
  setup: PluginSetup,
): void {
  const early = (["admit", "rewrite", "route"] as const).find((hook) => hooks[hook]);
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

export async function mountObservers(
  config: GatewayConfig,
  setup: PluginSetup,
): Promise<MountedObserver[]> {
  const observers: MountedObserver[] = [];
  for (const mounted of config.observers) {
    const observer = await setup.run<Observer>(mounted);
    if (observer) observers.push({ id: mounted.id, observer, sends: mounted.definition.sends });
  }
  return observers;
}
