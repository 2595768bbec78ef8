// Finds the route of a literal path by one lookup. Nearly every request has such a path. h3 would
// find the same route, but its search costs 6.0% more processor time per request. This was measured
// with requests of 1 KB. All other paths are matched by h3 (`generation-app.ts`), which is loaded
// with the first such request: h3 and srvx load Node's own copy of undici, an eighth of a start.
import type { IncomingMessage, ServerResponse, RequestListener } from "node:http";
import type { Generation } from "../../pipeline/generation.ts";
import type { MountedFrontend, MountedRoute } from "../../pipeline/exchange/mounted.ts";
import { runPipeline } from "../../pipeline/pipeline.ts";

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
    return found && runPipeline(gen, found, { req, res, params: NO_PARAMS });
  };
}

type Routes = readonly Pick<MountedFrontend, "routes">[];

/** Returns a lookup of routes by their literal path. */
export function createExactRouteLookup(
  frontends: Routes,
): (method: string, url: string) => MountedRoute | undefined {
  const methods = new Map<string, Map<string, MountedRoute | undefined>>();
  for (const frontend of frontends as readonly MountedFrontend[])
    for (const route of frontend.routes)
      for (const path of [route.path].flat()) {
        if (ROUTE_PATTERN.test(path)) continue;
        const paths = methods.get(route.method) ?? new Map<string, MountedRoute | undefined>();
        methods.set(route.method, paths);
        // If several routes share a path, h3 decides between them.
        paths.set(path, paths.has(path) ? undefined : { frontend, route, path });
      }
  return (method, url) => {
    const mark = url.indexOf("?");
    return methods.get(method)?.get(mark < 0 ? url : url.slice(0, mark));
  };
}

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
