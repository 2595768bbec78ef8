// Nearly every request names its route letter for letter. Such a one is found by one look, without what h3 makes for a search;
// h3 would find the same route, and finds all others.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Generation } from "../../pipeline/generation.ts";
import type { MountedFrontend, MountedRoute } from "../../pipeline/exchange/mounted.ts";
import { runPipeline } from "../../pipeline/pipeline.ts";

/** Undefined: it has to be looked for. */
export type ExactRouteHandler = (
  req: IncomingMessage,
  res: ServerResponse,
) => Promise<void> | undefined;

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});
/** A name of a part, or anything at all. */
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

/** The one route whose path this is, as it stands. */
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
        // Which of two is meant is h3's to say.
        paths.set(path, paths.has(path) ? undefined : { frontend, route, path });
      }
  return (method, url) => {
    const mark = url.indexOf("?");
    return methods.get(method)?.get(mark < 0 ? url : url.slice(0, mark));
  };
}
