// The frontends of gateway.yaml, set up, and the routes that they serve.
import type { GatewayConfig, MountConfig } from "../../config/types.ts";
import type { Kind } from "../../model/request.ts";
import type { Frontend, Route } from "../../plugin/frontend.ts";
import type { Protocol } from "../../plugin/protocol.ts";
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
    const secret = frontend.secret?.bind(frontend) ?? bearer;
    const chain = compile(middleware, name);
    const spoken = new Map<Protocol, MountedFrontend>();
    for (const part of byProtocol(frontend)) {
      noteDoors(part, doors);
      const { protocol, routes } = part;
      const one: MountedFrontend = {
        name,
        frontend: part,
        routes: routes.filter((route) => spokenAt(route, frontend) === protocol),
        protocol,
        server: protocol?.server as MountedFrontend["server"],
        validate: validator(protocol?.server?.schema),
        secret,
        chain,
        spoken,
      };
      if (protocol) spoken.set(protocol, one);
      frontends.push(one);
    }
  }
  return { frontends, doors };
}

const spokenAt = (route: Route, { protocol }: Frontend): Protocol | undefined =>
  ("op" in route ? route.protocol : undefined) ?? protocol;

/** Where several may be spoken, the one in which a request begins comes first. */
function allSpokenAt(route: Route, frontend: Frontend): readonly (Protocol | undefined)[] {
  const more = "op" in route ? (route.protocols ?? []) : [];
  return [...new Set([spokenAt(route, frontend), ...more])];
}

/** A frontend that speaks several protocols is one for each: what stands behind a route asks its frontend what is spoken. */
function byProtocol(frontend: Frontend): readonly Frontend[] {
  const parts = new Map<Protocol | undefined, Route[]>();
  for (const route of frontend.routes)
    for (const protocol of allSpokenAt(route, frontend)) {
      const routes = parts.get(protocol);
      if (routes) routes.push(route);
      else parts.set(protocol, [route]);
    }
  if (parts.size <= 1 && (parts.size === 0 || parts.has(frontend.protocol))) return [frontend];
  const fault = frontend.fault?.bind(frontend);
  return [...parts].map(([protocol, routes]) => ({
    routes,
    ...(protocol && { protocol }),
    ...(fault && { fault }),
  }));
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
    if ("op" in route && !allSpokenAt(route, frontend).every((protocol) => protocol?.server))
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
