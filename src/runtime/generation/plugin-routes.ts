// Registers the routes that plugins answer themselves, in contrast to the model routes of
// frontends. Determines the listener of each route and the credential that a client must present.
import { ROLES } from "../../config/sections/admin-config.ts";
import { problem } from "../../config/problems.ts";
import type { GatewayConfig, MountConfig } from "../../config/gateway-config.ts";
import type {
  Frontend,
  ObserverRoute,
  PluginRoute,
  Route,
  RouteAddress,
  SocketRoute,
} from "../../plugin/frontend.ts";
import { createHookRunner, type MountedMiddleware } from "../../pipeline/hooks/hook-runner.ts";
import { guardRoute } from "../../pipeline/hooks/route-guard.ts";
import type { MountedFrontend } from "../../pipeline/exchange/mounted.ts";
import { isApiPath } from "../access/principal.ts";
import type { AdminPrincipals } from "../access/admin-principals.ts";
import { requireAdminRole } from "../access/route-permission.ts";
import { readBearerToken } from "../http/bearer.ts";
import type { PluginSetup } from "../plugin-host/plugin-setup.ts";

type ListenerName = "public" | "admin";
type AnyRoute = Route | PluginRoute | ObserverRoute;

/**
 * Routes as a plugin returned them. They are validated, because a plugin in plain JavaScript can
 * return anything.
 */
interface PluginRoutes {
  readonly mounted: MountConfig<any>;
  readonly routes: readonly AnyRoute[];
  /** Listener of routes that do not specify one. */
  readonly defaultListener: ListenerName;
  /** The only listener that a route may use, with the reason. */
  readonly requiredListener?: { readonly listener: ListenerName; readonly why: string };
  readonly renderFault?: Frontend["encodeFault"];
}

/** All plugin routes of a generation, by listener. */
export class PluginRouteTable {
  readonly adminFrontends: MountedFrontend[] = [];
  readonly #claimed: Record<ListenerName, Map<string, string>> = {
    public: new Map(),
    admin: new Map(),
  };
  readonly #setup: PluginSetup;
  readonly #adminPrincipals: AdminPrincipals | undefined;

  constructor(setup: PluginSetup, adminPrincipals: AdminPrincipals | undefined) {
    this.#setup = setup;
    this.#adminPrincipals = adminPrincipals;
  }

  /** Registers the routes of the admin listener. Returns the other routes. */
  register({
    mounted,
    routes,
    defaultListener,
    requiredListener,
    renderFault,
  }: PluginRoutes): Route[] {
    const open: Route[] = [];
    for (const route of routes) {
      const on = "actionType" in route ? "public" : (route.listener ?? defaultListener);
      const wrong = findRouteFlaw(route, on, requiredListener);
      if (wrong !== undefined)
        this.#setup.addMountProblem(mounted, `${routeNameOf(route)} ${wrong}`);
      else if (!this.#claim(mounted, route, on)) continue;
      else if (on === "public") open.push(this.#withHookBreakers(mounted, route as Route));
      else
        this.adminFrontends.push(
          this.#toAdminFrontend(
            mounted.id,
            this.#withHookBreakers(mounted, route as Route),
            renderFault,
          ),
        );
    }
    return open;
  }

  /** Registers the socket routes of a frontend. Returns the socket routes whose paths are free. */
  registerSockets(mounted: MountConfig<any>, sockets: readonly SocketRoute[]): SocketRoute[] {
    return sockets.flatMap((route) => {
      const wrong = findSocketFlaw(route);
      if (wrong !== undefined) this.#setup.addMountProblem(mounted, wrong);
      return wrong === undefined &&
        this.#claim(mounted, { ...route, method: "WebSocket" }, "public")
        ? [this.#withHookBreakers(mounted, route)]
        : [];
    });
  }

  /**
   * Warns the operator about routes on a listener that gateway.yaml does not open. These routes are
   * not served.
   */
  warnOfMissingListener({ admin }: Pick<GatewayConfig, "admin">): void {
    if (admin) return;
    const routes = Map.groupBy(this.adminFrontends, ({ name }) => name);
    for (const [id, mounted] of routes)
      this.#setup.addProblem(
        id,
        problem.noAdminListener(mounted.flatMap(({ plugin }) => plugin.routes.map(routeNameOf))),
      );
  }

  /** Returns a middleware's public routes as a separate frontend. */
  toFrontend(
    { id }: MountConfig<any>,
    routes: readonly Route[],
    middleware: readonly MountedMiddleware[],
  ): MountedFrontend {
    return {
      ...PLAIN_FRONTEND,
      name: id,
      plugin: { routes },
      routes,
      hooks: createHookRunner(middleware, id),
    };
  }

  #withHookBreakers<R extends Route | SocketRoute>({ id }: MountConfig<any>, route: R): R {
    const { services, scope } = this.#setup;
    const { log, timerWheel, hookBreakers } = services;
    return guardRoute(route, { id, log, timerWheel }, (hook) =>
      hookBreakers.create(id, hook, scope),
    );
  }

  #toAdminFrontend(name: string, route: Route, fault: Frontend["encodeFault"]): MountedFrontend {
    const least = ("role" in route ? route.role : undefined) ?? "owner";
    const accounts = "allowAccountAdmins" in route && route.allowAccountAdmins === true;
    const run = requireAdminRole(this.#adminPrincipals, { least, accounts });
    const admit = { id: "admin", run, appliesTo: () => true };
    return {
      ...PLAIN_FRONTEND,
      name,
      plugin: { routes: [route], ...(fault && { encodeFault: fault }) },
      routes: [route],
      hooks: createHookRunner([], name).with({ admit: [admit] }),
    };
  }

  #claim(mounted: MountConfig<any>, route: RouteAddress, on: ListenerName): boolean {
    const taken = this.#claimed[on];
    let free = true;
    for (const path of [route.path].flat()) {
      const key = `${route.method} ${path}`;
      const other = taken.get(key);
      if (other !== undefined) {
        this.#setup.addMountProblem(mounted, `${key} is already served by ${other}`);
        free = false;
      }
      taken.set(key, mounted.id.replace(/^frontends\./, ""));
    }
    return free;
  }
}

const PLAIN_FRONTEND = {
  protocol: undefined,
  server: undefined,
  validate: () => undefined,
  extractCredential: readBearerToken,
  byProtocol: new Map(),
} as const;

const routeNameOf = ({ method, path }: AnyRoute): string => `${method} ${[path].flat()[0]}`;

function findSocketFlaw(route: SocketRoute): string | undefined {
  const { path, openSession, readModel } = route as SocketRoute & {
    readonly openSession?: unknown;
    readonly readModel?: unknown;
  };
  const kinds = [openSession, readModel].filter((one) => typeof one === "function");
  return kinds.length === 1
    ? undefined
    : `the socket ${[path].flat()[0]} must have either openSession or readModel`;
}

/** Names of the cookies of the console. */
const RESERVED_COOKIE = /^(?:__Host-|__Secure-)?tollgate/i;

function findRouteFlaw(
  route: AnyRoute,
  on: ListenerName,
  only: PluginRoutes["requiredListener"],
): string | undefined {
  const {
    listener: declaredListener,
    role,
    allowUnauthenticated,
  } = route as { listener?: unknown; role?: unknown; allowUnauthenticated?: unknown };
  if ("actionType" in route)
    return declaredListener === "admin" || role !== undefined
      ? "is a model route, which is allowed only on the public listener"
      : undefined;
  if (typeof route.handle !== "function") return "has no handler";
  const reserved = [route.cookies ?? []].flat().find((name) => RESERVED_COOKIE.test(name));
  if (reserved !== undefined) return `reads the cookie ${reserved}, which is reserved`;
  if (on !== "public" && on !== "admin")
    return `is on ${JSON.stringify(on)}, which must be public or admin`;
  if (on === "admin" && [route.path].flat().some(isApiPath)) return "is reserved for commands";
  if (only && on !== only.listener) return `is on ${on}: ${only.why}`;
  if (on === "public" && role !== undefined)
    return "has a role, which is allowed only for routes on the admin listener";
  if (on === "admin" && allowUnauthenticated !== undefined && role !== undefined)
    return "has both open access and a role: remove one of them";
  if (role !== undefined && !(ROLES as readonly unknown[]).includes(role))
    return `has the role ${JSON.stringify(role)}, which must be one of ${ROLES.join(", ")}`;
  return undefined;
}
