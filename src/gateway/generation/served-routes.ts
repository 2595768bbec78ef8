// Routes that plugins answer themselves, beside those of frontends to models: which listener each is on, and what a client must present.
import { ROLES } from "../../config/admin.ts";
import { problem } from "../../config/problems.ts";
import type { GatewayConfig, MountConfig } from "../../config/types.ts";
import type { Frontend, ObserverRoute, PluginRoute, Route } from "../../plugin/frontend.ts";
import { compile, type MountedMiddleware } from "../../walk/hooks.ts";
import { enduringRoute } from "../../walk/route-failures.ts";
import type { MountedFrontend } from "../../walk/mounted.ts";
import { isApi } from "../admin/paths.ts";
import type { Holders } from "../admin/holders.ts";
import { admitting } from "../admin/permission.ts";
import { bearer } from "../http/bearer.ts";
import type { PluginSetup } from "./plugin-setup.ts";

type Listener = "public" | "admin";
type AnyRoute = Route | PluginRoute | ObserverRoute;

/** A route as a plugin gave it. It is not believed: an author who writes JavaScript may have given anything. */
interface Brought {
  readonly mounted: MountConfig<any>;
  readonly routes: readonly AnyRoute[];
  /** The listener of a route that names none. */
  readonly usual: Listener;
  /** The one listener that a route may be on, with the reason. */
  readonly only?: { readonly on: Listener; readonly why: string };
  readonly fault?: Frontend["fault"];
}

/** Every route of a generation, by where it is served. */
export class ServedRoutes {
  readonly admin: MountedFrontend[] = [];
  readonly #taken: Record<Listener, Map<string, string>> = { public: new Map(), admin: new Map() };
  readonly #setup: PluginSetup;
  readonly #holders: Holders | undefined;

  constructor(setup: PluginSetup, holders: Holders | undefined) {
    this.#setup = setup;
    this.#holders = holders;
  }

  /** Takes those of the admin listener in; the others are the answer. */
  sorted({ mounted, routes, usual, only, fault }: Brought): Route[] {
    const open: Route[] = [];
    for (const route of routes) {
      const on = "op" in route ? "public" : (route.on ?? usual);
      const wrong = flaw(route, on, only);
      if (wrong !== undefined) this.#setup.refuse(mounted, `${nameOf(route)} ${wrong}`);
      else if (!this.#take(mounted, route, on)) continue;
      else if (on === "public") open.push(this.#enduring(mounted, route as Route));
      else
        this.admin.push(this.#onAdmin(mounted.id, this.#enduring(mounted, route as Route), fault));
    }
    return open;
  }

  /** A route on a listener that gateway.yaml does not open is not served: a warning for the operator. */
  needListener({ admin }: Pick<GatewayConfig, "admin">): void {
    if (admin) return;
    const routes = Map.groupBy(this.admin, ({ name }) => name);
    for (const [id, mounted] of routes)
      this.#setup.complain(
        id,
        problem.noAdminListener(mounted.flatMap(({ frontend }) => frontend.routes.map(nameOf))),
      );
  }

  /** A middleware's public ones, as a frontend of its own. */
  asFrontend(
    { id }: MountConfig<any>,
    routes: readonly Route[],
    middleware: readonly MountedMiddleware[],
  ): MountedFrontend {
    return { ...BARE, name: id, frontend: { routes }, routes, chain: compile(middleware, id) };
  }

  #enduring({ id }: MountConfig<any>, route: Route): Route {
    const { services, scope } = this.#setup;
    const { log, watchdog, conducts } = services;
    return enduringRoute(route, { id, log, watchdog }, (hook) => conducts.of(id, hook, scope));
  }

  #onAdmin(name: string, route: Route, fault: Frontend["fault"]): MountedFrontend {
    const least = ("role" in route ? route.role : undefined) ?? "owner";
    const accounts = "accounts" in route && route.accounts === true;
    const run = admitting(this.#holders, { least, accounts });
    const admit = { id: "admin", run, applies: () => true };
    return {
      ...BARE,
      name,
      frontend: { routes: [route], ...(fault && { fault }) },
      routes: [route],
      chain: { ...compile([], name), admit: [admit] },
    };
  }

  #take(mounted: MountConfig<any>, route: AnyRoute, on: Listener): boolean {
    const taken = this.#taken[on];
    let free = true;
    for (const path of [route.path].flat()) {
      const key = `${route.method} ${path}`;
      const other = taken.get(key);
      if (other !== undefined) {
        this.#setup.refuse(mounted, `${key} is served by ${other} already`);
        free = false;
      }
      taken.set(key, mounted.id.replace(/^frontends\./, ""));
    }
    return free;
  }
}

const BARE = {
  protocol: undefined,
  server: undefined,
  validate: () => undefined,
  secret: bearer,
  spoken: new Map(),
} as const;

const nameOf = ({ method, path }: AnyRoute): string => `${method} ${[path].flat()[0]}`;

function flaw(route: AnyRoute, on: Listener, only: Brought["only"]): string | undefined {
  const { on: said, role, open } = route as { on?: unknown; role?: unknown; open?: unknown };
  if ("op" in route)
    return said === "admin" || role !== undefined
      ? "leads to models, and that is for the public port and its keys"
      : undefined;
  if (typeof route.serve !== "function") return "has no serve";
  if (on !== "public" && on !== "admin")
    return `is on ${JSON.stringify(on)}; there are public and admin`;
  if (on === "admin" && [route.path].flat().some(isApi)) return "is where commands are given";
  if (only && on !== only.on) return `is on ${on}: ${only.why}`;
  if (on === "public" && role !== undefined)
    return "has a role, and roles are the admin listener's";
  if (on === "admin" && open !== undefined && role !== undefined)
    return "is open and has a role: say one of them";
  if (role !== undefined && !(ROLES as readonly unknown[]).includes(role))
    return `has the role ${JSON.stringify(role)}; there are ${ROLES.join(", ")}`;
  return undefined;
}
