// Registers a generation's routes with h3. Handlers write to the Node response directly. h3 is only
// used for routing, and its own errors are never sent to clients.
import type { IncomingMessage, ServerResponse } from "node:http";
import { H3, type H3Event } from "h3";
import { NodeRequest, sendNodeResponse } from "srvx/node";
import { nextRequestId } from "../../lib/request-id.ts";
import { ERRORS, fail, getFault, type Fault } from "../../model/error.ts";
import type { RejectedRequest } from "../../plugin/observer.ts";
import type { Generation } from "../../pipeline/generation.ts";
import type { MountedFrontend, MountedRoute } from "../../pipeline/exchange/mounted.ts";
import { NO_PROVIDER } from "../../pipeline/privacy/zero-retention.ts";
import { createPlainError } from "../../pipeline/stages/reject.ts";
import { runPipeline } from "../../pipeline/pipeline.ts";
import type { FileStore } from "../services/image-file-store.ts";
import { PEER_PATH, MAX_REQUEST_BYTES } from "../services/peer-gateways.ts";
import { editDistance } from "../../lib/text.ts";
import { FILE_PATH, hasStarted, type RequestHandler } from "./h3-adapter.ts";
import { decodeParams } from "./path-pattern.ts";
import type { Route } from "../../plugin/frontend.ts";

/** Return value by which h3 recognizes that the response was already sent. */
const H3_HANDLED = Symbol.for("h3.handled");

export interface AppOptions {
  gen: Generation;
  frontends: readonly MountedFrontend[];
  /** Store of the images that clients requested by URL. */
  files?: Pick<FileStore, "serve">;
  /**
   * Answers a query from another gateway on the store. Returns undefined if the sender is not one.
   */
  answerPeer?: (question: Buffer) => Promise<Buffer | undefined>;
  /** Called for each request without a matching route. */
  onRejected?: OnRejected;
  /**
   * Whether this is the admin listener. Its paths are not suggested in errors, because only token
   * holders may see them, and a plugin may serve "/".
   */
  admin?: boolean;
}

/**
 * Reports a request that was answered before it reached a frontend, with the status that its client
 * received.
 */
export type OnRejected = (refusal: Omit<RejectedRequest, "at" | "listener">) => void;

/** Creates the handler of all requests without a literal path. */
export const createRoutes = (options: AppOptions): RequestHandler =>
  createAppHandler(
    createApp(options),
    createUnroutedResponder(options.frontends, options.onRejected),
  );

/**
 * Passes Node's requests and responses to h3. h3's own adapter ends a response again that a handler
 * has already ended, which costs more than all other routing. This handler skips finished
 * responses. A handler that writes to the Node response resolves when its response has started, and
 * its return value is ignored. `respondUnrouted` replaces responses that h3 generates, for example
 * for a malformed path.
 */
export const createAppHandler =
  (
    app: H3,
    respondUnrouted?: (req: IncomingMessage, res: ServerResponse, status: number) => void,
  ): RequestHandler =>
  async (req, res) => {
    const answer = await app.fetch(new NodeRequest({ req, res }));
    if (hasStarted(res)) return;
    if (respondUnrouted) respondUnrouted(req, res, answer.status);
    else await sendNodeResponse(res, answer);
  };

function createApp(options: AppOptions): H3 {
  const { gen, frontends, files, answerPeer, admin = false } = options;
  const app = new H3({ silent: true });
  const known = new Map<string, Set<string>>();
  const run = (
    mounted: MountedRoute,
    event: H3Event,
    given: Record<string, string> | undefined,
  ) => {
    const { req, res } = nodeRequestOf(event);
    const params = decodeParams(given);
    if (!params) {
      sendFault(res, mounted.frontend, BAD_PATH_FAULT, options.onRejected);
      return H3_HANDLED;
    }
    return runPipeline(gen, mounted, { req, res, params }).then(() => H3_HANDLED);
  };
  const unsigned = findFileRoute(frontends);
  if (files)
    mountFileRoute(app, files, {
      onRejected: options.onRejected,
      ...(unsigned && {
        runUnsigned: (event: H3Event, name: string) =>
          run(unsigned.mounted, event, { [unsigned.param]: name }),
      }),
    });
  if (answerPeer) mountPeerRoute(app, answerPeer, options.onRejected);
  for (const frontend of frontends)
    for (const route of frontend.routes)
      for (const path of [route.path].flat()) {
        known.set(path, (known.get(path) ?? new Set()).add(route.method));
        const mounted: MountedRoute = { frontend, route, path };
        app.on(route.method as "POST", path, (event) => run(mounted, event, event.context.params));
      }
  app.all("/**", (event) => {
    const { req, res } = nodeRequestOf(event);
    const path = (req.url ?? "/").split("?", 1)[0]!;
    const methods = [...known].find(([known]) => known === path.replace(/\/+$/, ""))?.[1];
    const closest = findClosestFrontend(frontends, path);
    if (methods) res.setHeader("allow", [...methods].join(", "));
    sendFault(
      res,
      closest,
      methods
        ? {
            kind: "invalid",
            code: "method_not_allowed",
            message: `${req.method} is not allowed for ${path}. Use ${[...methods].join(" or ")}.`,
          }
        : createUnknownPathFault(frontends, { method: req.method ?? "", path, admin }),
      options.onRejected,
      methods ? 405 : undefined,
    );
    return H3_HANDLED;
  });
  return app;
}

const BAD_PATH_FAULT: Fault = {
  kind: "invalid",
  code: "bad_path",
  message: "Invalid percent-encoding in the path.",
};
const INTERNAL_FAULT: Fault = { kind: "internal", message: "Internal error." };

/**
 * Answers requests that h3 rejects before they reach a route. Uses the protocol of the frontend
 * with the most similar paths.
 */
export const createUnroutedResponder =
  (frontends: readonly MountedFrontend[], onRejected?: OnRejected) =>
  (req: IncomingMessage, res: ServerResponse, status: number): void => {
    const closest = findClosestFrontend(frontends, (req.url ?? "/").split("?", 1)[0]!);
    sendFault(res, closest, status < 500 ? BAD_PATH_FAULT : INTERNAL_FAULT, onRejected);
  };

/** Returns the route of a frontend for the paths of images, such as `/files/:id` for uploads. */
function findFileRoute(
  frontends: readonly MountedFrontend[],
): { readonly mounted: MountedRoute; readonly param: string } | undefined {
  for (const { frontend, route, path } of listRoutePaths(frontends)) {
    const [, param] = /^\/files\/:([A-Za-z]\w*)$/.exec(path) ?? [];
    if (param !== undefined && route.method === "GET")
      return { mounted: { frontend, route, path }, param };
  }
  return undefined;
}

/**
 * Serves stored image files. No key is required, because the signed URL authorizes the request, and
 * it expires. `runUnsigned` handles GET requests without a signature.
 */
function mountFileRoute(
  app: H3,
  files: Pick<FileStore, "serve">,
  {
    onRejected,
    runUnsigned,
  }: {
    readonly onRejected: OnRejected | undefined;
    readonly runUnsigned?: (event: H3Event, name: string) => symbol | Promise<symbol>;
  },
): void {
  for (const method of ["GET", "HEAD"] as const)
    app.on(method, FILE_PATH, async (event) => {
      const { req, res } = nodeRequestOf(event);
      const name = event.context.params?.["name"] ?? "";
      const query = new URLSearchParams((req.url ?? "").split("?")[1] ?? "");
      if (runUnsigned && method === "GET" && !query.has("s")) return runUnsigned(event, name);
      try {
        const file = await files.serve(name, query);
        res.writeHead(file.status, file.headers as Record<string, string>);
        res.end(method === "HEAD" ? undefined : file.body);
      } catch (problem) {
        sendFault(res, undefined, getFault(problem) ?? INTERNAL_FAULT, onRejected);
      }
      return H3_HANDLED;
    });
}

/** Answers other gateways on the same store. All other clients receive a 404. */
function mountPeerRoute(
  app: H3,
  answerPeer: NonNullable<AppOptions["answerPeer"]>,
  onRejected: OnRejected | undefined,
): void {
  app.on("POST", PEER_PATH, async (event) => {
    const { req, res } = nodeRequestOf(event);
    const question = await readBody(req, MAX_REQUEST_BYTES);
    const answer = question && (await answerPeer(question).catch(() => undefined));
    if (answer) {
      res.writeHead(200, {
        "content-type": "application/octet-stream",
        "content-length": answer.length,
      });
      res.end(answer);
    } else sendFault(res, undefined, NO_PEER_ROUTE_FAULT, onRejected);
    return H3_HANDLED;
  });
}

const NO_PEER_ROUTE_FAULT: Fault = {
  kind: "not_found",
  code: "unknown_path",
  message: `Unknown route POST ${PEER_PATH}.`,
};

/** Returns the body, or undefined if it is larger than `most` or incomplete. */
async function readBody(req: IncomingMessage, most: number): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of req as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > most) return undefined;
      parts.push(part);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(parts);
}

function nodeRequestOf(event: H3Event): { req: IncomingMessage; res: ServerResponse } {
  const node = event.runtime?.node ?? fail("internal", "Tollgate requires Node.js.");
  return node as { req: IncomingMessage; res: ServerResponse };
}

function sendFault(
  res: ServerResponse,
  frontend: MountedFrontend | undefined,
  fault: Fault,
  onRejected: OnRejected | undefined,
  as?: number,
): void {
  const id = nextRequestId();
  const encoded = tryOrUndefined(() => frontend?.server?.encodeFault(fault, { id }));
  const body = JSON.stringify(encoded?.body ?? createPlainError(fault, id));
  const status = as ?? encoded?.status ?? ERRORS[fault.kind][0];
  onRejected?.({ id, status, code: fault.code ?? fault.kind, method: res.req.method });
  res.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "x-request-id": id,
    "service-zdr": res.req.headers["service-zdr"] === undefined ? "not-requested" : "enforced",
    "service-zdr-policy": NO_PROVIDER,
    ...(!res.req.complete && { connection: "close" }),
  });
  res.end(body);
}

function tryOrUndefined<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!getFault(error)) throw error;
    return undefined;
  }
}

// Creates the error for a path without a route: selects the frontend that encodes the error, and
// the route that was probably meant.

/** Maximum path length for the comparison by edit distance, in characters. */
const MAX_COMPARED_LENGTH = 80;

interface RoutePath {
  readonly frontend: MountedFrontend;
  readonly route: Route;
  readonly path: string;
}

const listRoutePaths = (frontends: readonly MountedFrontend[]): RoutePath[] =>
  frontends.flatMap((frontend) =>
    frontend.routes.flatMap((route) =>
      [route.path].flat().map((path): RoutePath => ({ frontend, route, path })),
    ),
  );

const pathSegments = (path: string): string[] => path.split("/").filter((part) => part !== "");

/**
 * Returns the frontend whose protocol the client probably speaks. It is the frontend whose route
 * shares the longest prefix with the path: at least 2 segments. Otherwise it is the only frontend
 * whose first paths contain a segment of this path, such as `v1beta`.
 */
function findClosestFrontend(
  frontends: readonly MountedFrontend[],
  path: string,
): MountedFrontend | undefined {
  const segments = pathSegments(path);
  const all = listRoutePaths(frontends);
  let best: MountedFrontend | undefined;
  let longest = 1;
  for (const place of all) {
    const own = pathSegments(place.path);
    const differs = own.findIndex((part, i) => part !== segments[i]);
    const shared = differs < 0 ? own.length + 1 : differs;
    if (shared > longest) [longest, best] = [shared, place.frontend];
  }
  if (best) return best;
  for (const part of segments) {
    const having = new Set(
      frontends.filter(({ routes }) =>
        routes.some((route) => pathSegments([route.path].flat()[0]!).includes(part)),
      ),
    );
    const [only] = having;
    if (having.size === 1) return only;
  }
  return undefined;
}

/**
 * Returns the most similar route, such as "GET /v1/models". Returns undefined if no route is
 * similar enough.
 */
function suggestRoute(
  frontends: readonly MountedFrontend[],
  method: string,
  path: string,
): string | undefined {
  if (path.length > MAX_COMPARED_LENGTH) return undefined;
  const wanted = path.toLowerCase();
  let best: RoutePath | undefined;
  let least = Infinity;
  for (const place of listRoutePaths(frontends)) {
    const own = place.path.toLowerCase();
    const maxLength = Math.max(own.length, wanted.length);
    // A route with the same ending differs only in its base path, which is the most common mistake.
    const tail = countCommonTail(wanted, own);
    if (tail < 2 && Math.abs(own.length - wanted.length) > maxLength / 3) continue;
    const letters = tail < 2 ? editDistance(wanted, own) : -tail;
    if (letters > maxLength / 3 || (tail < 2 && !hasSimilarSegments(wanted, own))) continue;
    const score = letters + (place.route.method === method ? 0 : 0.5);
    if (score < least) [least, best] = [score, place];
  }
  return best && `${best.route.method} ${best.path.replace(/(?:\*\*)?:(\w+)/g, "<$1>")}`;
}

/**
 * Whether the segments of two paths can be typing errors of each other. A short word in a long path
 * can be another word: /v1/videos is not /v1/models.
 */
function hasSimilarSegments(one: string, other: string): boolean {
  const [a, b] = [pathSegments(one), pathSegments(other)];
  const isSimilar = (part: string, i: number) =>
    b[i]!.includes(":") ||
    editDistance(part, b[i]!) <= Math.max(1, Math.floor(Math.max(part.length, b[i]!.length) / 3));
  return a.length !== b.length || a.every(isSimilar);
}

/** Returns the number of segments that two paths share at their end. */
function countCommonTail(one: string, other: string): number {
  const [a, b] = [pathSegments(one), pathSegments(other)];
  let shared = 0;
  while (shared < Math.min(a.length, b.length) && a.at(-1 - shared) === b.at(-1 - shared)) shared++;
  return shared;
}

/** Returns the error for the client. The admin listener suggests no routes. */
function createUnknownPathFault(
  frontends: readonly MountedFrontend[],
  { method, path, admin }: { method: string; path: string; admin: boolean },
): Fault {
  const near = admin ? undefined : suggestRoute(frontends, method, path);
  const hint = near
    ? ` Did you mean ${near}?`
    : admin
      ? ""
      : frontends.length === 0
        ? " No frontend is configured."
        : " Check the base URL of your client.";
  return {
    kind: "not_found",
    code: "unknown_path",
    message: `Unknown route ${method} ${path}.${hint}`,
  };
}
