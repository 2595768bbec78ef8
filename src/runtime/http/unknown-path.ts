// Creates the error for a path without a route: selects the frontend that encodes it, and the route
// that was probably meant.
import { editDistance } from "../../lib/text.ts";
import type { Fault } from "../../model/error.ts";
import type { Route } from "../../plugin/frontend.ts";
import type { MountedFrontend } from "../../pipeline/exchange/mounted.ts";

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
export function findClosestFrontend(
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
 * Returns the most similar route, such as "GET /v1/models". Returns undefined if none is similar
 * enough.
 */
export function suggestRoute(
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
    // A route with the same ending differs only in its base path, which is where most mistakes are.
    const tail = countCommonTail(wanted, own);
    if (tail < 2 && Math.abs(own.length - wanted.length) > maxLength / 3) continue;
    const letters = tail < 2 ? editDistance(wanted, own) : -tail;
    if (letters > maxLength / 3) continue;
    const score = letters + (place.route.method === method ? 0 : 0.5);
    if (score < least) [least, best] = [score, place];
  }
  return best && `${best.route.method} ${best.path.replace(/(?:\*\*)?:(\w+)/g, "<$1>")}`;
}

/** Returns how many segments two paths share at their end. */
function countCommonTail(one: string, other: string): number {
  const [a, b] = [pathSegments(one), pathSegments(other)];
  let shared = 0;
  while (shared < Math.min(a.length, b.length) && a.at(-1 - shared) === b.at(-1 - shared)) shared++;
  return shared;
}

/** Returns the error for the client. The admin listener suggests no routes. */
export function createUnknownPathFault(
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
