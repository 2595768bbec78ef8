// Checks routes as a gateway mounts them, for every kind of plugin.
import assert from "node:assert/strict";
import type { ObserverRoute, PluginRoute, Route } from "../../plugin/frontend.ts";

type AnyRoute = Route | PluginRoute | ObserverRoute;

/** Returns the paths of a route, which can have several. */
export const pathsOf = ({ path }: AnyRoute): readonly string[] => [path].flat();

/** Each route must have unique paths, a method in capital letters, and a handler. */
export function checkRoutes(routes: readonly AnyRoute[]): void {
  const seen = new Set<string>();
  for (const route of routes) {
    assert.match(route.method, /^[A-Z]+$/, `method ${route.method} must be uppercase`);
    for (const path of pathsOf(route)) {
      assert.match(
        path,
        /^\/[^?#\s]*$/,
        `path ${path} must start with a slash and have no query, fragment, or space`,
      );
      const one = `${route.method} ${path.replace(/:\w+/g, ":")}`;
      assert.ok(!seen.has(one), `route ${one} is declared twice`);
      seen.add(one);
    }
    const forms = ["json", "multipart", "either", ...("handle" in route ? ["bytes"] : [])];
    assert.ok(forms.includes(route.body ?? "json"), `unknown body type ${route.body}`);
    if ("actionType" in route) continue;
    assert.equal(
      typeof route.handle,
      "function",
      `${route.method} ${pathsOf(route)[0]} has no handler`,
    );
    const { listener, allowUnauthenticated, role } = route as {
      listener?: unknown;
      allowUnauthenticated?: unknown;
      role?: unknown;
    };
    assert.ok(
      listener === undefined || listener === "public" || listener === "admin",
      `unknown listener ${String(listener)}`,
    );
    assert.ok(
      role === undefined || allowUnauthenticated === undefined,
      "a route with a role must not be open",
    );
  }
}
