// Finds the route of a literal path, or of one whose last segment is a parameter, by one or two
// lookups. Nearly every request has such a path. h3 would find the same route, but its search costs
// 6.0% more processor time per request. This was measured with requests of 1 KB. All other paths are
// matched by h3 (`generation-app.ts`), which is loaded with the first such request: h3 and srvx load
// Node's own copy of undici, an eighth of a start.
import type { IncomingMessage, ServerResponse, RequestListener } from "node:http";
import type { Generation } from "../../pipeline/generation.ts";
import type { MountedFrontend, MountedRoute } from "../../pipeline/exchange/mounted.ts";
import { runPipeline } from "../../pipeline/pipeline.ts";
import { PEER_PATH } from "../services/peer-gateways.ts";

/** Handles a request. Returns undefined if h3 has to find the route. */
export type ExactRouteHandler = (
  req: IncomingMessage,
  res: ServerResponse,
) => Promise<void> | undefined;

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});
/** Matches a path with a parameter or a wildcard. */
const ROUTE_PATTERN = /[:*]/;

export function createExactRouteHandler(
  gen: Generation,
  frontends: readonly MountedFrontend[],
): ExactRouteHandler {
  const find = createExactRouteLookup(frontends);
  return (req, res) => {
    const found = find(req.method ?? "GET", req.url ?? "/");
    return found && runPipeline(gen, found.mounted, { req, res, params: found.params });
  };
}

type Routes = readonly Pick<MountedFrontend, "routes">[];

/** Path of the images that clients requested by URL. */
export const FILE_PATH = "/files/:name";
const HEALTH_PATHS = ["/", "/healthz", "/health", "/readyz"] as const;

/**
 * Routes of the gateway itself, by method. If a plugin's pattern may match one of them, h3 decides,
 * which has the gateway's routes first.
 */
const HOST_PATHS: Readonly<Record<string, readonly string[] | undefined>> = {
  __proto__: null,
  GET: [FILE_PATH, ...HEALTH_PATHS],
  HEAD: [FILE_PATH, ...HEALTH_PATHS],
  POST: [PEER_PATH],
} as never;

/** A route with the parameters of a path. */
export interface FoundRoute {
  readonly mounted: MountedRoute;
  readonly params: Readonly<Record<string, string>>;
}

/** A last segment that is a parameter, after a literal path. */
const LAST_PARAMETER = /^([^:*]*\/):([A-Za-z]\w*)$/;
/** A segment that means itself, as it is. */
const PLAIN_SEGMENT = /^(?!\.{1,2}$)[\w.~-]+$/;

/**
 * Returns a lookup of routes by their path: a literal one, or one whose last segment is a parameter.
 * It finds no path that several routes match.
 */
export function createExactRouteLookup(
  frontends: Routes,
): (method: string, url: string) => FoundRoute | undefined {
  const methods = new Map<string, RoutesOfMethod>();
  for (const frontend of frontends as readonly MountedFrontend[])
    for (const route of frontend.routes)
      for (const path of [route.path].flat()) {
        const of: RoutesOfMethod = methods.get(route.method) ?? {
          literal: new Map(),
          patterns: [],
        };
        methods.set(route.method, of);
        const mounted: MountedRoute = { frontend, route, path };
        if (ROUTE_PATTERN.test(path)) of.patterns.push(mounted);
        // If several routes share a path, h3 decides between them.
        else of.literal.set(path, of.literal.has(path) ? undefined : toFound(mounted));
      }
  const byPrefix = new Map(
    [...methods].map(([method, of]) => [method, parametersOf(of.patterns, HOST_PATHS[method])]),
  );
  methods.get("POST")?.literal.set(PEER_PATH, undefined);
  return (method, url) => {
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    const literal = methods.get(method)?.literal;
    if (!literal || literal.has(path)) return literal?.get(path);
    const end = path.lastIndexOf("/") + 1;
    const found = byPrefix.get(method)!.get(path.slice(0, end));
    if (!found) return undefined;
    const value = path.slice(end);
    return PLAIN_SEGMENT.test(value)
      ? { mounted: found.mounted, params: { [found.name]: value } }
      : undefined;
  };
}

interface RoutesOfMethod {
  readonly literal: Map<string, FoundRoute | undefined>;
  readonly patterns: MountedRoute[];
}

const toFound = (mounted: MountedRoute): FoundRoute => ({ mounted, params: NO_PARAMS });

/** Returns the routes whose last segment is their only parameter, by the path before it. */
function parametersOf(
  patterns: readonly MountedRoute[],
  hostPaths: readonly string[] = [],
): ReadonlyMap<string, { readonly mounted: MountedRoute; readonly name: string }> {
  const found = new Map<string, { mounted: MountedRoute; name: string }>();
  for (const mounted of patterns) {
    const [, prefix, name] = LAST_PARAMETER.exec(mounted.path) ?? [];
    const isOnly =
      patterns.every((other) => other === mounted || !mayShare(other.path, mounted.path)) &&
      hostPaths.every((path) => !mayShare(path, mounted.path));
    if (prefix !== undefined && isOnly) found.set(prefix, { mounted, name: name! });
  }
  return found;
}

/** Whether two patterns may match the same path. */
function mayShare(one: string, other: string): boolean {
  const [own, others] = [one.split("/"), other.split("/")];
  for (let at = 0; at < Math.max(own.length, others.length); at++) {
    const [a, b] = [own[at], others[at]];
    if (isOfManyLengths(a) || isOfManyLengths(b)) return true;
    if (a === undefined || b === undefined) return false;
    if (a !== b && !a.includes(":") && !b.includes(":")) return false;
  }
  return true;
}

/** Whether a segment of a pattern may match several segments or none. */
const isOfManyLengths = (segment: string | undefined): boolean =>
  segment !== undefined && /[*?+]/.test(segment);

/** Handles a request. Rejects only if the gateway itself fails. */
export type RequestHandler = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

export interface NodeHandlerOptions {
  /** Handles requests to literal paths of frontends. */
  readonly exactRoute?: ExactRouteHandler;
  /** Answers health checks. Returns whether the request was one. */
  readonly answerHealth?: (req: IncomingMessage, res: ServerResponse) => boolean;
  /** Loads the handler of all other paths. It contains h3, and is loaded with its first request. */
  readonly loadRoutes: () => RequestHandler | Promise<RequestHandler>;
}

/** Creates the request listener. */
export function createNodeHandler({
  exactRoute,
  answerHealth,
  loadRoutes,
}: NodeHandlerOptions): RequestListener {
  let routes: RequestHandler | Promise<RequestHandler> | undefined;
  const search: RequestHandler = async (req, res) => {
    try {
      routes = await (routes ??= loadRoutes());
    } catch (error) {
      // The next request tries to load them again.
      routes = undefined;
      throw error;
    }
    return routes(req, res);
  };
  return (req, res) => {
    try {
      const running = exactRoute?.(req, res);
      if (running) running.catch(() => respondInternalError(res));
      else if (!answerHealth?.(req, res)) search(req, res).catch(() => respondInternalError(res));
    } catch {
      respondInternalError(res);
    }
  };
}

/**
 * Answers `/healthz`, `/health`, `/readyz`, and on the public listener `/`, so that a gateway that
 * has just started answers them before h3 is loaded.
 */
export function createHealthResponder(
  readReadiness: () => { ready: boolean; state: string },
  isAdmin: boolean,
): (req: IncomingMessage, res: ServerResponse) => boolean {
  const OK = () => [200, { status: "ok" }] as const;
  const bodies: Readonly<Record<string, (() => readonly [number, object]) | undefined>> = {
    __proto__: null,
    "/healthz": OK,
    "/health": OK,
    "/readyz": () => {
      const { ready, state } = readReadiness();
      return [ready ? 200 : 503, { status: state }];
    },
    "/": isAdmin ? undefined : () => [200, { name: "tollgate" }],
  } as never;
  return (req, res) => {
    if (req.method !== "GET" && req.method !== "HEAD") return false;
    const path = req.url!.split("?", 1)[0]!;
    const make = bodies[path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path];
    if (!make) return false;
    const [status, body] = make();
    const text = JSON.stringify(body);
    res.writeHead(status, { "content-type": "application/json", "content-length": text.length });
    res.end(req.method === "HEAD" ? undefined : text);
    return true;
  };
}

export const hasStarted = (res: ServerResponse) =>
  res.headersSent || res.writableEnded || res.destroyed;

/** Answers errors that h3 did not handle, without details for the client. */
function respondInternalError(res: ServerResponse): void {
  if (hasStarted(res)) res.destroy();
  else res.writeHead(500, { connection: "close" }).end();
}
