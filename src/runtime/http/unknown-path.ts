// A path without a route: which frontend words the error, and which route was probably meant.
import { editDistance } from "../../lib/text.ts";
import type { Fault } from "../../model/error.ts";
import type { Route } from "../../plugin/frontend.ts";
import type { MountedFrontend } from "../../pipeline/exchange/mounted.ts";

/** A longer path is not compared letter by letter. */
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
 * The frontend whose protocol the client of this path speaks: the one that shares most of the path's beginning, at least two
 * parts of it; or the only one whose routes are first of all below a part of this path, such as `v1beta`.
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

/** "GET /v1/models", or undefined where no route is a slip of the finger apart. */
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
    // One that ends alike differs in its base address, which is where most mistakes are.
    const tail = countCommonTail(wanted, own);
    if (tail < 2 && Math.abs(own.length - wanted.length) > maxLength / 3) continue;
    const letters = tail < 2 ? editDistance(wanted, own) : -tail;
    if (letters > maxLength / 3) continue;
    const score = letters + (place.route.method === method ? 0 : 0.5);
    if (score < least) [least, best] = [score, place];
  }
  return best && `${best.route.method} ${best.path.replace(/(?:\*\*)?:(\w+)/g, "<$1>")}`;
}

/** How many parts two paths share at their end, counted from the last. */
function countCommonTail(one: string, other: string): number {
  const [a, b] = [pathSegments(one), pathSegments(other)];
  let shared = 0;
  while (shared < Math.min(a.length, b.length) && a.at(-1 - shared) === b.at(-1 - shared)) shared++;
  return shared;
}

/** What the client is told. An admin listener lists nothing. */
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
        ? " No frontend is mounted."
        : " Check the base URL of your client.";
  return {
    kind: "not_found",
    code: "unknown_path",
    message: `There is no route ${method} ${path}.${hint}`,
  };
}
