// A path without a route: which frontend words the error, and which route was probably meant.
import { distance } from "../../lib/text.ts";
import type { Fault } from "../../model/error.ts";
import type { Route } from "../../plugin/frontend.ts";
import type { MountedFrontend } from "../../walk/mounted.ts";

/** A longer path is not compared letter by letter. */
const LONGEST = 80;

interface Place {
  readonly frontend: MountedFrontend;
  readonly route: Route;
  readonly path: string;
}

const places = (frontends: readonly MountedFrontend[]): Place[] =>
  frontends.flatMap((frontend) =>
    frontend.routes.flatMap((route) =>
      [route.path].flat().map((path): Place => ({ frontend, route, path })),
    ),
  );

const partsOf = (path: string): string[] => path.split("/").filter((part) => part !== "");

/**
 * The frontend whose protocol the client of this path speaks: the one that shares most of the path's beginning, at least two
 * parts of it; or the only one whose routes are first of all below a part of this path, such as `v1beta`.
 */
export function family(
  frontends: readonly MountedFrontend[],
  path: string,
): MountedFrontend | undefined {
  const asked = partsOf(path);
  const all = places(frontends);
  let best: MountedFrontend | undefined;
  let most = 1;
  for (const place of all) {
    const own = partsOf(place.path);
    const differs = own.findIndex((part, i) => part !== asked[i]);
    const shared = differs < 0 ? own.length + 1 : differs;
    if (shared > most) [most, best] = [shared, place.frontend];
  }
  if (best) return best;
  for (const part of asked) {
    const having = new Set(
      frontends.filter(({ routes }) =>
        routes.some((route) => partsOf([route.path].flat()[0]!).includes(part)),
      ),
    );
    const [only] = having;
    if (having.size === 1) return only;
  }
  return undefined;
}

/** "GET /v1/models", or undefined where no route is a slip of the finger apart. */
export function nearest(
  frontends: readonly MountedFrontend[],
  method: string,
  path: string,
): string | undefined {
  if (path.length > LONGEST) return undefined;
  const asked = path.toLowerCase();
  let best: Place | undefined;
  let least = Infinity;
  for (const place of places(frontends)) {
    const own = place.path.toLowerCase();
    const most = Math.max(own.length, asked.length);
    // One that ends alike differs in its base address, which is where most mistakes are.
    const tail = ends(asked, own);
    if (tail < 2 && Math.abs(own.length - asked.length) > most / 3) continue;
    const letters = tail < 2 ? distance(asked, own) : -tail;
    if (letters > most / 3) continue;
    const score = letters + (place.route.method === method ? 0 : 0.5);
    if (score < least) [least, best] = [score, place];
  }
  return best && `${best.route.method} ${best.path.replace(/(?:\*\*)?:(\w+)/g, "<$1>")}`;
}

/** How many parts two paths share at their end, counted from the last. */
function ends(one: string, other: string): number {
  const [a, b] = [partsOf(one), partsOf(other)];
  let shared = 0;
  while (shared < Math.min(a.length, b.length) && a.at(-1 - shared) === b.at(-1 - shared)) shared++;
  return shared;
}

/** What the client is told. An admin listener lists nothing. */
export function nothingThere(
  frontends: readonly MountedFrontend[],
  { method, path, admin }: { method: string; path: string; admin: boolean },
): Fault {
  const near = admin ? undefined : nearest(frontends, method, path);
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
