// What becomes of a route whose own code fails: what reads a request for a frontend, and what answers one by itself. A route that
// keeps failing refuses, and all others go on.
import type { Route, ServedAnswer } from "../plugin/frontend.ts";
import type { Conduct } from "./conduct.ts";
import { tolerated, unusable, type Tolerance } from "./hook-failures.ts";

const HOW = {
  read: { timeoutMs: 30_000, check: checkReading },
  // What it does may be asking others.
  serve: { timeoutMs: 60_000, check: checkAnswer },
} as const;

/** With a deadline, and what it gives looked at. A route that is an instance of a class keeps its methods. */
export function enduringRoute(
  route: Route,
  of: Pick<Tolerance, "id" | "log" | "watchdog">,
  conduct: (hook: string) => Conduct,
): Route {
  const hook = "op" in route ? "read" : "serve";
  const run = (route as unknown as { [hook: string]: unknown })[hook];
  if (typeof run !== "function") return route;
  const { timeoutMs, check } = HOW[hook];
  const told: Tolerance = {
    ...of,
    timeoutMs,
    onError: "refuse",
    conducts: { [hook]: conduct(hook) },
  };
  const kept = tolerated<unknown, unknown, unknown>(
    told,
    hook,
    (x, body) => (run as (x: unknown, body: unknown) => unknown).call(route, x, body),
    { whose: (x) => x, check },
  );
  return Object.assign(Object.create(route) as Route, { ...route, [hook]: kept });
}

const isObject = (it: unknown): it is Readonly<Record<string, unknown>> =>
  typeof it === "object" && it !== null;

/** Of `model` the walk says itself what it must be: a frontend may hand on what its client sent. */
function checkReading(said: unknown): void {
  if (said === undefined) return;
  if (!isObject(said)) throw unusable("read gave something that is no reading");
  const { stream, name } = said;
  if (stream !== undefined && typeof stream !== "boolean")
    throw unusable("read gave a stream that is neither true nor false");
  if (name !== undefined && typeof name !== "string")
    throw unusable("read gave a name that is no text");
}

function checkAnswer(said: unknown): void {
  const status: unknown = isObject(said) ? (said as unknown as ServedAnswer).status : undefined;
  if (!Number.isInteger(status) || (status as number) < 200 || (status as number) > 599)
    throw unusable("serve gave no answer with a status");
}
