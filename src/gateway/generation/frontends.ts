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
import type { ServedRoutes } from "./served-routes.ts";

export interface MountedFrontends {
  readonly frontends: readonly MountedFrontend[];
  /** The path at which each kind of model is asked for, to name it where another one was taken. */
  readonly doors: ReadonlyMap<Kind, string>;
}

export async function mountFrontends(
  config: GatewayConfig,
  setup: PluginSetup,
  middleware: readonly MountedMiddleware[],
  served: ServedRoutes,
): Promise<MountedFrontends> {
  const frontends: MountedFrontend[] = [];
  const doors = new Map<Kind, string>();
  for (const mounted of config.frontends) {
    const made = await setup.run<Frontend>(mounted);
    if (!made) continue;
    const name = mounted.id.replace(/^frontends\./, "");
    const fault = made.fault?.bind(made);
    const routes = served.sorted({ mounted, routes: made.routes, usual: "public", fault });
    const frontend = withRoutes(made, routes);
    checkSpoken(mounted, frontend, setup);
    const secret = made.secret?.bind(made) ?? bearer;
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

/** Of several protocols the first is the one in which a request begins. */
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
  return [...parts].map(([protocol, routes]) => {
    const { protocol: _, ...part } = withRoutes(frontend, routes);
    return { ...part, ...(protocol && { protocol }) };
  });
}

/** The same with fewer routes; an instance of a class keeps its methods. */
function withRoutes(frontend: Frontend, routes: readonly Route[]): Frontend {
  const { protocol } = frontend;
  const fault = frontend.fault?.bind(frontend);
  return { routes, ...(protocol && { protocol }), ...(fault && { fault }) };
}

function checkSpoken(mounted: MountConfig<any>, frontend: Frontend, setup: PluginSetup): void {
  for (const route of frontend.routes) {
    if ("op" in route && !allSpokenAt(route, frontend).every((protocol) => protocol?.server))
      setup.refuse(mounted, "it has a route to models, and its protocol has no server half");
    if ("op" in route && route.protocols?.length && !route.read)
      setup.refuse(
        mounted,
        "one of its routes speaks several protocols, and no `read` chooses one",
      );
  }
}

/** For people: an address as it is written stands before one that has words in it to be filled in. */
function noteDoors({ routes, protocol }: Frontend, doors: Map<Kind, string>): void {
  for (const route of routes) {
    if (!("op" in route) || route.op !== "generate" || !protocol) continue;
    const { kind } = protocol.work;
    const path = [route.path].flat()[0]!;
    const known = doors.get(kind);
    if (known === undefined || (known.includes(":") && !path.includes(":"))) doors.set(kind, path);
  }
}
