// Checks of a frontend: routes that can be mounted, an error message for every kind of error, and
// the extraction of credentials.
import assert from "node:assert/strict";
import { ERRORS, getFault, type ErrorKind } from "../../model/error.ts";
import type { Frontend, ObserverRoute, PluginRoute, Route } from "../../plugin/frontend.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import { type Check } from "../check.ts";
import { deepFreeze } from "../freeze.ts";
import * as fakes from "../fakes.ts";
import { protocolChecks } from "../protocol-laws.ts";
import { readRecordings } from "../recording.ts";
import { createSetupCheck } from "./side-effects.ts";
import { checkHostileMessages, checkSocketRoutes } from "./sockets.ts";
import type { ConformanceSubject } from "./subject.ts";

/**
 * Returns the checks of a frontend: routes, errors, credentials, reading the input, and its
 * protocol.
 */
export function frontendChecks(subject: ConformanceSubject): Check[] {
  const each = createSetupCheck<Frontend>(subject);
  return [
    each("routes are well-formed", checkShape),
    each("sockets are well-formed", checkSocketRoutes),
    each("sockets withstand hostile messages", checkHostileMessages),
    each("every error has a message", checkErrors),
    each("credential extraction has no side effects", checkCredentialExtraction),
    each("readInput returns the model and keeps the body unchanged", checkReading),
    each("its protocols pass the protocol checks", async (made) => {
      const folder = subject.recordings;
      for (const protocol of listProtocols(made))
        for (const law of protocolChecks(protocol, {
          trials: 10,
          ...(folder && { recordings: folder }),
        }))
          await law.run().catch((error: Error) => {
            throw new Error(`${protocol.id}: ${law.name}: ${error.message}`, { cause: error });
          });
    }),
  ];
}

const listProtocols = ({ protocol, routes }: Frontend): ReadonlySet<Protocol> =>
  new Set(
    [
      protocol,
      ...routes.flatMap((route) =>
        "actionType" in route ? [route.protocol, ...(route.protocols ?? [])] : [],
      ),
    ].filter((one) => one !== undefined),
  );

function checkShape({ routes, sockets = [], protocol }: Frontend): void {
  assert.ok(routes.length + sockets.length > 0, "a frontend must have a route");
  checkRoutes(routes);
  for (const route of routes) {
    if ("handle" in route) continue;
    assert.ok(
      ["generate", "count", "relay"].includes(route.actionType),
      `unknown actionType ${route.actionType}`,
    );
    for (const spoken of [route.protocol ?? protocol, ...(route.protocols ?? [])])
      assert.ok(
        spoken?.server,
        "a route with a request pipeline needs a protocol with a server half",
      );
    assert.ok(
      route.readInput || !route.protocols?.length,
      "if a route has several protocols, `readInput` must choose one",
    );
  }
}

function checkErrors({ encodeFault, protocol }: Frontend): void {
  const server = protocol?.server;
  if (!encodeFault && !server) return;
  const to = { id: "x1" };
  for (const kind of Object.keys(ERRORS) as ErrorKind[]) {
    const message = `Something went wrong (${kind}).`;
    const fault = deepFreeze({ kind, message });
    const { status, body } = encodeFault
      ? encodeFault(fault, fakes.requestHead(), to)
      : server!.encodeFault(fault, to);
    assert.ok(status === undefined || (status >= 400 && status < 600), `${kind}: status ${status}`);
    const text = JSON.stringify(body);
    if (kind !== "internal")
      assert.ok(text.includes(message), `${kind}: the body must contain the message: ${text}`);
  }
}

/**
 * For any request, the result must be a credential, undefined, or a fault that names the header to
 * use.
 */
function checkCredentialExtraction({ extractCredential: look }: Frontend): void {
  if (!look) return;
  for (const headers of [
    {},
    { authorization: "Bearer k1" },
    { authorization: "Basic abc" },
    { authorization: "Bearer" },
    { authorization: "" },
    { "x-api-key": "k1" },
    { "x-api-key": "k1", authorization: "Bearer k2" },
  ])
    for (const query of ["", "key=k3", "key=", "api_key=k4&access_token=k5"])
      try {
        const found = look(deepFreeze({ ...headers }), new URLSearchParams(query));
        assert.ok(
          found === undefined || (typeof found === "string" && found !== ""),
          "a secret must be a string",
        );
      } catch (error) {
        assert.equal(
          getFault(error)?.kind,
          "unauthenticated",
          `a thrown error must be a fault that explains what to do: ${String(error)}`,
        );
      }
}

async function checkReading(
  { routes }: Frontend,
  { recordings: folder }: ConformanceSubject,
): Promise<void> {
  const bodies = folder ? readRecordings(folder).map(({ request }) => request) : [];
  for (const route of routes) {
    if ("handle" in route || !route.readInput) continue;
    const params = Object.fromEntries(
      pathsOf(route).flatMap((path) =>
        [...path.matchAll(/:(\w+)/g)].map(([, name]) => [name, "provider/model"]),
      ),
    );
    for (const body of [...bodies, {}]) {
      const x = fakes.requestHead({ params, method: route.method });
      try {
        const { model } = await route.readInput(x, deepFreeze(body));
        assert.ok(
          typeof model === "string" ? model !== "" : model?.provider,
          "the result must name a model",
        );
      } catch (error) {
        assert.ok(
          getFault(error),
          `a request that cannot be read must throw a fault, not ${String(error)}`,
        );
      }
    }
  }
}

// Checks routes as a gateway mounts them, for every kind of plugin.

type AnyRoute = Route | PluginRoute | ObserverRoute;

/** Returns the paths of a route, which can have several. */
const pathsOf = ({ path }: AnyRoute): readonly string[] => [path].flat();

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
    const own = "handle" in route ? ["bytes", "parts", "stream"] : [];
    const forms = ["json", "multipart", "either", ...own];
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
