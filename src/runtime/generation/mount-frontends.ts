// Sets up the frontends of gateway.yaml and the routes that they serve.
import type { GatewayConfig, MountConfig } from "../../config/gateway-config.ts";
import type { Operation } from "../../model/request.ts";
import type { Frontend, Route, SocketRoute } from "../../plugin/frontend.ts";
import type { EndedJob, JobKind } from "../../plugin/store/job-kind.ts";
import type { JobHooks } from "../observers/job-reports.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { fail } from "../../model/error.ts";
import { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { MountedFrontend, MountedSocket } from "../../pipeline/exchange/mounted.ts";
import { createHookRunner, type MountedMiddleware } from "../../pipeline/hooks/hook-runner.ts";
import { readBearerToken } from "../http/bearer.ts";
import { createBodyValidator } from "./mount-endpoint.ts";
import type { PluginSetup } from "../plugin-host/plugin-setup.ts";
import type { PluginRouteTable } from "./plugin-routes.ts";

export interface MountedFrontends {
  readonly frontends: readonly MountedFrontend[];
  readonly sockets: readonly MountedSocket[];
  readonly jobs: JobHooks;
  /** Path per operation. Error messages suggest this path if a client used a wrong one. */
  readonly entryPaths: ReadonlyMap<Operation, string>;
}

export async function mountFrontends(
  config: GatewayConfig,
  setup: PluginSetup,
  middleware: readonly MountedMiddleware[],
  served: PluginRouteTable,
): Promise<MountedFrontends> {
  const frontends: MountedFrontend[] = [];
  const sockets: MountedSocket[] = [];
  const kinds = new Map<string, JobKind>();
  const beforeEnd: ((job: EndedJob) => Promise<void>)[] = [];
  const doors = new Map<Operation, string>();
  for (const mounted of config.frontends) {
    const made = await setup.setUp<Frontend>(mounted);
    if (!made) continue;
    for (const one of made.jobKinds ?? [])
      if (kinds.has(one.kind))
        setup.addMountProblem(mounted, `another frontend runs jobs of the kind "${one.kind}"`);
      else kinds.set(one.kind, one);
    if (made.beforeJobEnds) beforeEnd.push(made.beforeJobEnds.bind(made));
    const name = mounted.id.replace(/^frontends\./, "");
    const fault = made.encodeFault?.bind(made);
    const routes = served.register({
      mounted,
      routes: [...made.routes, ...callRoutesOf(made, sockets, setup)],
      defaultListener: "public",
      renderFault: fault,
    });
    const frontend = withRoutes(made, routes);
    checkProtocols(mounted, frontend, setup);
    const secret = made.extractCredential?.bind(made) ?? readBearerToken;
    const hooks = createHookRunner(middleware, name);
    const spoken = new Map<Protocol, MountedFrontend>();
    const mount = (part: Frontend): MountedFrontend => {
      const { protocol, routes } = part;
      const one: MountedFrontend = {
        name,
        plugin: part,
        routes: routes.filter((route) => protocolOfRoute(route, frontend) === protocol),
        protocol,
        server: protocol?.server as MountedFrontend["server"],
        validate: createBodyValidator(protocol?.server?.schema),
        extractCredential: secret,
        hooks,
        byProtocol: spoken,
      };
      if (protocol) spoken.set(protocol, one);
      frontends.push(one);
      return one;
    };
    for (const part of splitByProtocol(frontend)) {
      recordEntryPaths(part, doors);
      mount(part);
    }
    for (const route of served.registerSockets(mounted, made.sockets ?? [])) {
      const protocol = route.protocol ?? frontend.protocol;
      if (!checkSocketProtocol(mounted, route, protocol, setup)) continue;
      const of =
        spoken.get(protocol) ?? mount({ ...withRoutes(frontend, []), protocol, sockets: [route] });
      if ("readModel" in route && !doors.has(protocol.operationSpec.name))
        doors.set(protocol.operationSpec.name, [route.path].flat()[0]!);
      for (const path of [route.path].flat()) sockets.push({ frontend: of, route, path });
    }
  }
  return { frontends, sockets, jobs: { kinds, beforeEnd }, entryPaths: doors };
}

/** Returns the routes at which clients set up calls, which the host handles. */
function callRoutesOf(
  { protocol, sockets = [] }: Frontend,
  mounted: readonly MountedSocket[],
  { services }: PluginSetup,
): readonly Route[] {
  return sockets.flatMap((socket): Route[] => {
    if (!("calls" in socket) || !(socket.protocol ?? protocol)?.socket?.calls) return [];
    const at = [socket.path].flat()[0];
    return [
      {
        method: "POST",
        path: socket.calls!,
        body: "bytes",
        ...(socket.acceptsClientSecrets === true && { acceptsClientSecrets: true }),
        handle: (x, body) => {
          const found = mounted.find(({ path }) => path === at);
          const start = services.calls?.start;
          if (!found || !start || !(x instanceof HostExchange))
            return fail("unsupported", "Calls are not supported here.");
          return start(x, found, body);
        },
      },
    ];
  });
}

/** Whether the protocol has the half that the route needs. If not, reports a problem. */
function checkSocketProtocol(
  mounted: MountConfig<any>,
  route: SocketRoute,
  protocol: Protocol | undefined,
  setup: PluginSetup,
): protocol is Protocol {
  const half = "openSession" in route ? "server" : "socket";
  if (protocol?.[half]) return true;
  setup.addMountProblem(mounted, `it has a socket route, but its protocol has no ${half} half`);
  return false;
}

const protocolOfRoute = (route: Route, { protocol }: Frontend): Protocol | undefined =>
  ("actionType" in route ? route.protocol : undefined) ?? protocol;

/** Returns the protocols of a route. A request starts in the first frontend. */
function protocolsOfRoute(route: Route, frontend: Frontend): readonly (Protocol | undefined)[] {
  const more = "actionType" in route ? (route.protocols ?? []) : [];
  return [...new Set([protocolOfRoute(route, frontend), ...more])];
}

/**
 * Splits a frontend with several protocols into one per protocol, because the code behind a route
 * reads the protocol from its frontend.
 */
function splitByProtocol(frontend: Frontend): readonly Frontend[] {
  const parts = new Map<Protocol | undefined, Route[]>();
  for (const route of frontend.routes)
    for (const protocol of protocolsOfRoute(route, frontend)) {
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

/** Returns a copy with fewer routes. Methods of class instances are kept. */
function withRoutes(frontend: Frontend, routes: readonly Route[]): Frontend {
  const { protocol, sockets } = frontend;
  const fault = frontend.encodeFault?.bind(frontend);
  return {
    routes,
    ...(sockets && { sockets }),
    ...(protocol && { protocol }),
    ...(fault && { encodeFault: fault }),
  };
}

function checkProtocols(mounted: MountConfig<any>, frontend: Frontend, setup: PluginSetup): void {
  for (const route of frontend.routes) {
    if (
      "actionType" in route &&
      !protocolsOfRoute(route, frontend).every((protocol) => protocol?.server)
    )
      setup.addMountProblem(mounted, "it has a model route, but its protocol has no server half");
    if ("actionType" in route && route.protocols?.length && !route.readInput)
      setup.addMountProblem(
        mounted,
        "one of its routes has several protocols, but no `read` to choose one",
      );
  }
}

/** Records the path per operation for error messages. Paths without parameters are preferred. */
function recordEntryPaths({ routes, protocol }: Frontend, doors: Map<Operation, string>): void {
  for (const route of routes) {
    if (!("actionType" in route) || route.actionType !== "generate" || !protocol) continue;
    const { name } = protocol.operationSpec;
    const path = [route.path].flat()[0]!;
    const known = doors.get(name);
    if (known === undefined || (known.includes(":") && !path.includes(":"))) doors.set(name, path);
  }
}
