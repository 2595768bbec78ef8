// Handles failures of the plugin code of a route: functions that read a request for a frontend, and
// functions that serve a request. Requests for a route that fails repeatedly are rejected. All
// other routes continue to work.
import type { Route, RouteResponse, SocketRoute } from "../../plugin/frontend.ts";
import type { HookBreaker } from "./hook-breaker.ts";
import { HookGuard, invalidResult, type HookFailurePolicy } from "./hook-guard.ts";

const ROUTE_GUARDS = {
  readInput: { timeoutMs: 30_000, check: checkReadResult },
  readModel: { timeoutMs: 30_000, check: checkReadModelResult },
  // Serving a request may include calls to other services, so the timeout is long.
  handle: { timeoutMs: 60_000, check: checkServedResponse },
} as const;

/**
 * Wraps a route with a deadline and checks of its results. A route that is an instance of a class
 * keeps its methods.
 */
export function guardRoute<R extends Route | SocketRoute>(
  route: R,
  of: Pick<HookFailurePolicy, "id" | "log" | "timerWheel">,
  createBreaker: (hook: string) => HookBreaker,
): R {
  const hook = "actionType" in route ? "readInput" : "readModel" in route ? "readModel" : "handle";
  const run = (route as unknown as { [hook: string]: unknown })[hook];
  if (typeof run !== "function") return route;
  const { timeoutMs: usualMs, check } = ROUTE_GUARDS[hook];
  const timeoutMs =
    (hook === "handle" && "timeoutMs" in route ? route.timeoutMs : undefined) ?? usualMs;
  const policy: HookFailurePolicy = {
    ...of,
    timeoutMs,
    onError: "reject",
    breakers: { [hook]: createBreaker(hook) },
  };
  const guarded = new HookGuard(policy, hook).wrap<unknown, unknown, unknown>(
    (x, body) => (run as (x: unknown, body: unknown) => unknown).call(route, x, body),
    { exchangeOf: (x) => x, check },
  );
  return Object.assign(Object.create(route) as R, { ...route, [hook]: guarded });
}

const isObject = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null;

/**
 * Throws if the result of `read` is invalid. The pipeline itself checks `model`, because a frontend
 * may forward the client's value.
 */
function checkReadResult(result: unknown): void {
  if (result === undefined) return;
  if (!isObject(result)) throw invalidResult("read returned an invalid result");
  const { stream, name } = result;
  if (stream !== undefined && typeof stream !== "boolean")
    throw invalidResult("read returned a stream that is not a boolean");
  if (name !== undefined && typeof name !== "string")
    throw invalidResult("read returned a name that is not a string");
}

function checkReadModelResult(result: unknown): void {
  const model = isObject(result) ? result["model"] : undefined;
  if (typeof model !== "string" && !isObject(model))
    throw invalidResult("readModel returned no model");
}

function checkServedResponse(response: unknown): void {
  const status: unknown = isObject(response)
    ? (response as unknown as RouteResponse).status
    : undefined;
  if (!Number.isInteger(status) || (status as number) < 200 || (status as number) > 599)
    throw invalidResult("serve returned no response with a status");
}
