// A generation's routes on h3. Handlers write the node response themselves; h3 routes, and nothing it throws reaches a client.
import type { IncomingMessage, ServerResponse } from "node:http";
import { H3, type H3Event } from "h3";
import { nextId } from "../../lib/id.ts";
import { ERRORS, fail, faultOf, type Fault } from "../../model/error.ts";
import type { TurnedAway } from "../../plugin/observer.ts";
import type { Generation } from "../../walk/generation.ts";
import type { MountedFrontend, MountedRoute } from "../../walk/mounted.ts";
import { NO_PROVIDER } from "../../walk/candidates/privacy.ts";
import { plain } from "../../walk/stations/refuse.ts";
import { walk } from "../../walk/walk.ts";
import { family, nothingThere } from "./nowhere.ts";
import type { Files } from "../services/files.ts";
import { ASKED_AT, MOST_ASKED } from "../services/nodes.ts";

/** What h3 takes for "answered already". */
const HANDLED = Symbol.for("h3.handled");

export interface AppOptions {
  gen: Generation;
  frontends: readonly MountedFrontend[];
  /** For /readyz. */
  ready: () => { ready: boolean; state: string };
  /** Pictures that a client asked for by address. */
  files?: Pick<Files, "serve">;
  /** What another gateway on the store asks; undefined: it is none. */
  asked?: (question: Buffer) => Promise<Buffer | undefined>;
  /** Hears of each request that no route took. */
  refused?: Refused;
  /** Of the admin listener: no list of its paths, which is for the holders of tokens, and "/" is a plugin's to serve. */
  admin?: boolean;
}

/** A request that was answered before a frontend saw it, as its client was told. */
export type Refused = (refusal: Omit<TurnedAway, "at" | "listener">) => void;

export function createApp(of: AppOptions): H3 {
  const { gen, frontends, ready, files, asked, admin = false } = of;
  const app = new H3({ silent: true });
  const known = new Map<string, Set<string>>();
  health(app, ready, admin);
  if (files) keptFiles(app, files, of.refused);
  if (asked) askedByOthers(app, asked, of.refused);
  for (const frontend of frontends)
    for (const route of frontend.routes)
      for (const path of [route.path].flat()) {
        known.set(path, (known.get(path) ?? new Set()).add(route.method));
        const mounted: MountedRoute = { frontend, route, path };
        app.on(route.method as "POST", path, (event) => {
          const { req, res } = nodeOf(event);
          const params = decoded(event.context.params);
          if (!params) {
            refuse(res, frontend, BAD_PATH, of.refused);
            return HANDLED;
          }
          return walk(gen, mounted, { req, res, params }).then(() => HANDLED);
        });
      }
  app.all("/**", (event) => {
    const { req, res } = nodeOf(event);
    const path = (req.url ?? "/").split("?", 1)[0]!;
    const methods = [...known].find(([known]) => known === path.replace(/\/+$/, ""))?.[1];
    const told = family(frontends, path);
    if (methods) res.setHeader("allow", [...methods].join(", "));
    refuse(
      res,
      told,
      methods
        ? {
            kind: "invalid",
            code: "method_not_allowed",
            message: `${req.method} is not answered at ${path}. Use ${[...methods].join(" or ")}.`,
          }
        : nothingThere(frontends, { method: req.method ?? "", path, admin }),
      of.refused,
      methods ? 405 : undefined,
    );
    return HANDLED;
  });
  return app;
}

const BAD_PATH: Fault = {
  kind: "invalid",
  code: "bad_path",
  message: "The path is not well encoded.",
};
const BROKEN: Fault = { kind: "internal", message: "Something went wrong here." };

/** What h3 refuses before a route has it: said in the protocol whose paths begin alike. */
export const stray =
  (frontends: readonly MountedFrontend[], refused?: Refused) =>
  (req: IncomingMessage, res: ServerResponse, status: number): void => {
    const told = family(frontends, (req.url ?? "/").split("?", 1)[0]!);
    refuse(res, told, status < 500 ? BAD_PATH : BROKEN, refused);
  };

function health(app: H3, ready: AppOptions["ready"], admin: boolean): void {
  const say = (event: H3Event, status: number, body: object) => {
    const { req, res } = nodeOf(event);
    const text = JSON.stringify(body);
    res.writeHead(status, { "content-type": "application/json", "content-length": text.length });
    res.end(req.method === "HEAD" ? undefined : text);
    return HANDLED;
  };
  for (const method of ["GET", "HEAD"] as const) {
    for (const path of ["/healthz", "/health"])
      app.on(method, path, (e) => say(e, 200, { status: "ok" }));
    app.on(method, "/readyz", (e) => {
      const { ready: yes, state } = ready();
      return say(e, yes ? 200 : 503, { status: state });
    });
    if (!admin) app.on(method, "/", (e) => say(e, 200, { name: "tollgate" }));
  }
}

/** No key is asked for: the signed address itself is the permission, and it ends. */
function keptFiles(app: H3, files: Pick<Files, "serve">, refused: Refused | undefined): void {
  for (const method of ["GET", "HEAD"] as const)
    app.on(method, "/files/:name", async (event) => {
      const { req, res } = nodeOf(event);
      try {
        const query = new URLSearchParams((req.url ?? "").split("?")[1] ?? "");
        const file = await files.serve(event.context.params?.["name"] ?? "", query);
        res.writeHead(file.status, file.headers as Record<string, string>);
        res.end(method === "HEAD" ? undefined : file.body);
      } catch (problem) {
        refuse(res, undefined, faultOf(problem) ?? BROKEN, refused);
      }
      return HANDLED;
    });
}

/** By gateways on the same store. To any other client there is nothing here. */
function askedByOthers(
  app: H3,
  asked: NonNullable<AppOptions["asked"]>,
  refused: Refused | undefined,
): void {
  app.on("POST", ASKED_AT, async (event) => {
    const { req, res } = nodeOf(event);
    const question = await read(req, MOST_ASKED);
    const answer = question && (await asked(question).catch(() => undefined));
    if (answer) {
      res.writeHead(200, {
        "content-type": "application/octet-stream",
        "content-length": answer.length,
      });
      res.end(answer);
    } else refuse(res, undefined, NOTHING_THERE, refused);
    return HANDLED;
  });
}

const NOTHING_THERE: Fault = {
  kind: "not_found",
  code: "unknown_path",
  message: `There is no route POST ${ASKED_AT}.`,
};

/** Undefined: it is longer, or was not sent whole. */
async function read(req: IncomingMessage, most: number): Promise<Buffer | undefined> {
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

function nodeOf(event: H3Event): { req: IncomingMessage; res: ServerResponse } {
  const node = event.runtime?.node ?? fail("internal", "Tollgate runs on Node.");
  return node as { req: IncomingMessage; res: ServerResponse };
}

/** Parameters once decoded; nothing when they cannot be. */
function decoded(params: Record<string, string> | undefined): Record<string, string> | undefined {
  const clear: Record<string, string> = {};
  try {
    for (const name in params) clear[name] = decodeURIComponent(params[name]!);
  } catch {
    return undefined;
  }
  return clear;
}

function refuse(
  res: ServerResponse,
  frontend: MountedFrontend | undefined,
  fault: Fault,
  refused: Refused | undefined,
  as?: number,
): void {
  const id = nextId();
  const told = safely(() => frontend?.server?.fault(fault, { id }));
  const body = JSON.stringify(told?.body ?? plain(fault, id));
  const status = as ?? told?.status ?? ERRORS[fault.kind][0];
  refused?.({ id, status, code: fault.code ?? fault.kind, method: res.req.method });
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

function safely<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (!faultOf(error)) throw error;
    return undefined;
  }
}
