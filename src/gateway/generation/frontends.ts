// The frontends of gateway.yaml, set up, and the routes that they serve.
import type { GatewayConfig, MountConfig } from "../../config/types.ts";
import type { Kind } from "../../model/request.ts";
import type { Frontend } from "../../plugin/frontend.ts";
import type { MountedFrontend } from "../../walk/mounted.ts";
import { compile, type MountedMiddleware } from "../../walk/hooks.ts";
import { bearer } from "../http/bearer.ts";
import { validator } from "./mounting.ts";
import type { PluginSetup } from "./plugin-setup.ts";

export interface MountedFrontends {
  readonly frontends: readonly MountedFrontend[];
  /** The path at which each kind of model is asked for, to name it where another one was taken. */
  readonly doors: ReadonlyMap<Kind, string>;
}

export async function mountFrontends(
  config: GatewayConfig,
  setup: PluginSetup,
  middleware: readonly MountedMiddleware[],
): Promise<MountedFrontends> {
  const frontends: MountedFrontend[] = [];
  const doors = new Map<Kind, string>();
  const routes = new Map<string, string>();
  for (const mounted of config.frontends) {
    const frontend = await setup.run<Frontend>(mounted);
    if (!frontend) continue;
    const name = mounted.id.replace(/^frontends\./, "");
    checkRoutes(mounted, name, frontend, routes, setup);
    noteDoors(frontend, doors);
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
  return { frontends, doors };
}

/** `routes`: those of the frontends before it, by the name of the frontend that serves them. */
function checkRoutes(
  mounted: MountConfig<any>,
  name: string,
  frontend: Frontend,
  routes: Map<string, string>,
  setup: PluginSetup,
): void {
  for (const route of frontend.routes) {
    if ("op" in route && !frontend.protocol?.server)
      setup.refuse(mounted, "it has a route to models, and its protocol has no server half");
    for (const path of [route.path].flat()) {
      const key = `${route.method} ${path}`;
      const other = routes.get(key);
      if (other !== undefined) setup.refuse(mounted, `${key} is served by ${other} already`);
      routes.set(key, name);
    }
  }
}

function noteDoors({ routes, protocol }: Frontend, doors: Map<Kind, string>): void {
  for (const route of routes)
    if ("op" in route && route.op === "generate" && protocol && !doors.has(protocol.work.kind))
      doors.set(protocol.work.kind, [route.path].flat()[0]!);
}
