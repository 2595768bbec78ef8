// A frontend: routes that can be mounted, errors in words for every kind, and one look at secrets.
import assert from "node:assert/strict";
import { ERRORS, faultOf, type ErrorKind } from "../../model/error.ts";
import type { Frontend } from "../../plugin/frontend.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Check } from "../check.ts";
import { freeze } from "../freeze.ts";
import * as pretend from "../pretend.ts";
import { protocolLaws } from "../protocol-laws.ts";
import { recordings } from "../recording.ts";
import { running } from "./innocence.ts";
import { pathsOf, wellFormed } from "./routes.ts";
import type { Subject } from "./subject.ts";

/** The laws of a frontend: routes, errors, the look at secrets, reading, and its protocol. */
export function frontend(subject: Subject): Check[] {
  const each = running<Frontend>(subject);
  return [
    each("routes are well-formed", shape),
    each("every error has words", refusals),
    each("the look at secrets is a look", secret),
    each("reading says what is asked for", reads),
    each("its protocols keep the laws of protocols", async (made) => {
      const folder = subject.recordings;
      for (const protocol of protocolsOf(made))
        for (const law of protocolLaws(protocol, {
          trials: 10,
          ...(folder && { recordings: folder }),
        }))
          await law.run().catch((error: Error) => {
            throw new Error(`${protocol.id}: ${law.name}: ${error.message}`, { cause: error });
          });
    }),
  ];
}

const protocolsOf = ({ protocol, routes }: Frontend): ReadonlySet<Protocol> =>
  new Set(
    [
      protocol,
      ...routes.flatMap((route) =>
        "op" in route ? [route.protocol, ...(route.protocols ?? [])] : [],
      ),
    ].filter((one) => one !== undefined),
  );

function shape({ routes, protocol }: Frontend): void {
  assert.ok(routes.length > 0, "a frontend has a route");
  wellFormed(routes);
  for (const route of routes) {
    if ("serve" in route) continue;
    assert.ok(["generate", "count", "relay"].includes(route.op), `there is no op ${route.op}`);
    for (const spoken of [route.protocol ?? protocol, ...(route.protocols ?? [])])
      assert.ok(spoken?.server, "a route that walks needs a protocol with a server half");
    assert.ok(route.read || !route.protocols?.length, "of several protocols `read` chooses one");
  }
}

function refusals({ fault, protocol }: Frontend): void {
  const server = protocol?.server;
  if (!fault && !server) return;
  const to = { id: "x1" };
  for (const kind of Object.keys(ERRORS) as ErrorKind[]) {
    const message = `Something went wrong (${kind}).`;
    const told = freeze({ kind, message });
    const { status, body } = fault ? fault(told, pretend.arrival(), to) : server!.fault(told, to);
    assert.ok(status === undefined || (status >= 400 && status < 600), `${kind}: status ${status}`);
    const text = JSON.stringify(body);
    if (kind !== "internal")
      assert.ok(text.includes(message), `${kind}: the message stands in the body: ${text}`);
  }
}

/** Whatever comes, the answer is a secret, nothing, or a fault that says which header to use. */
function secret({ secret: look }: Frontend): void {
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
        const found = look(freeze({ ...headers }), new URLSearchParams(query));
        assert.ok(
          found === undefined || (typeof found === "string" && found !== ""),
          "a secret is text",
        );
      } catch (error) {
        assert.equal(
          faultOf(error)?.kind,
          "unauthenticated",
          `what is thrown says what to do: ${String(error)}`,
        );
      }
}

async function reads({ routes }: Frontend, { recordings: folder }: Subject): Promise<void> {
  const bodies = folder ? recordings(folder).map(({ request }) => request) : [];
  for (const route of routes) {
    if ("serve" in route || !route.read) continue;
    const params = Object.fromEntries(
      pathsOf(route).flatMap((path) =>
        [...path.matchAll(/:(\w+)/g)].map(([, name]) => [name, "provider/model"]),
      ),
    );
    for (const body of [...bodies, {}]) {
      const x = pretend.arrival({ params, method: route.method });
      try {
        const { model } = await route.read(x, freeze(body));
        assert.ok(
          typeof model === "string" ? model !== "" : model?.provider,
          "a reading names a model",
        );
      } catch (error) {
        assert.ok(faultOf(error), `a request that cannot be read is a fault, not ${String(error)}`);
      }
    }
  }
}
