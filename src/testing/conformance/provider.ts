// A provider: endpoints that are well-formed, requests that carry the credential where it was promised and nowhere else,
// and work that stops when it is told to.
import assert from "node:assert/strict";
import { faultOf } from "../../model/error.ts";
import type { Kind } from "../../model/request.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Provider } from "../../plugin/provider.ts";
import type { Check } from "../check.ts";
import { freeze } from "../freeze.ts";
import { outgoing } from "../outgoing.ts";
import * as pretend from "../pretend.ts";
import { protocolLaws } from "../protocol-laws.ts";
import { addressOf, authOf } from "./line.ts";
import { leakIn, type Subject } from "./subject.ts";
import { running } from "./innocence.ts";
import { carried, flowing, stated } from "./native.ts";
import { recorded } from "./recorded.ts";
import { through } from "./through.ts";
import { aborts, isWire, native, refused } from "./work.ts";

/**
 * The laws of a provider: its lists, its readiness, its decoders, its native endpoints, and what it does when it is
 * aborted.
 */
export function provider(subject: Subject): Check[] {
  const each = running<Provider>(subject);
  return [
    each("endpoints are well-formed", shape),
    each("requests carry the credential where it was promised, and nowhere else", sends),
    each("a scheme with a token says of any refusal whether the token is over", tokens),
    each("an abort ends the work and its connection while upstream is silent", aborts),
    each("an upstream that fails is an error, not a hang", refused),
    each("native endpoints obey the grammar", native),
    each("native endpoints say what is recorded: text, counts, end and errors", stated),
    each("native endpoints send each field of a request, or say that it is lost", carried),
    each("a native answer reaches the client as it comes", flowing),
    each(
      "its decoders keep the laws of their protocols, over recordings cut at every byte",
      decoders,
    ),
    each("through a gateway, clients get what upstream says, as it says it", through),
  ];
}

function shape({ endpoints, models, ready }: Provider, { credential }: Subject): void {
  assert.ok(Array.isArray(endpoints), "endpoints is a list");
  for (const endpoint of endpoints) {
    const native = !isWire(endpoint);
    if (!native) {
      assert.ok(
        endpoint.protocol.client,
        `${endpoint.protocol.id} has no client half to call upstream with`,
      );
      assert.ok(endpoint.base, "a wire endpoint has a base");
    }
    if (endpoint.base !== undefined) {
      const { protocol } = new URL(endpoint.base);
      assert.ok(/^https?:$/.test(protocol), `the base ${endpoint.base} is not http`);
      assert.ok(
        !/[?#]/.test(endpoint.base),
        `the base ${endpoint.base} is an address, not a query`,
      );
    }
    for (const origin of endpoint.origins ?? [])
      assert.match(origin, /^https?:\/\/(\*\.)?[^/*]+$/, `${origin} is no origin`);
    if (typeof endpoint.auth === "object" && "header" in endpoint.auth) {
      assert.equal(
        endpoint.auth.header,
        endpoint.auth.header.toLowerCase(),
        "header names are lower case",
      );
      assert.ok(
        endpoint.auth.field in credential || Object.keys(credential).length === 0,
        `auth uses ${endpoint.auth.field}, which the given credential does not have`,
      );
    }
    for (const name of Object.keys(endpoint.headers ?? {}))
      assert.equal(name, name.toLowerCase(), "header names are lower case");
  }
  for (const part of [models, ready]) assert.ok(part === undefined || typeof part === "function");
}

/** One request as it would leave: encoded, prepared by protocol and endpoint, signed. */
async function sends({ endpoints }: Provider, { credential, secrets }: Subject): Promise<void> {
  for (const endpoint of endpoints.filter(isWire)) {
    const { client, work, id } = endpoint.protocol as Protocol<Kind>;
    const call = pretend.call({ protocol: id });
    const request = freeze(work.sample("model"));
    const path = endpoint.paths?.["generate"] ?? client!.paths.generate;
    const out = outgoing(client!.request(request, call), {
      path: typeof path === "string" ? path : path(call),
      headers: { ...endpoint.headers },
    });
    client!.prepare?.(out, call);
    endpoint.prepare?.(out, call);
    const url = addressOf(endpoint, out.path);
    assert.equal(url.origin, new URL(endpoint.base).origin, "a path stays below the base");
    const text = JSON.stringify(out.body);
    const signed = await authOf(
      endpoint,
      {
        method: out.method,
        url,
        headers: out.headers,
        body: Buffer.from(text),
        signal: call.signal,
      },
      freeze({ ...credential }),
    );
    for (const [what, thing] of [
      ["address", url.href],
      ["body", text],
      ["other headers", { ...out.headers }],
    ] as const)
      assert.equal(leakIn(thing, secrets), undefined, `the credential stands in the ${what}`);
    if (typeof endpoint.auth === "object" && "header" in endpoint.auth && secrets.length > 0)
      assert.ok(signed[endpoint.auth.header], `${endpoint.auth.header} carries the credential`);
    for (const [name, value] of Object.entries(signed)) {
      assert.equal(name, name.toLowerCase(), "header names are lower case");
      assert.match(value ?? "", /^[\t\x20-\x7e]*$/, `${name} can be written as a header`);
    }
  }
}

/** What is no answer of its provider's may come in its place: a proxy's page, half a text, nothing. */
const REFUSALS: readonly (readonly [number, string])[] = [
  [401, ""],
  [401, "{"],
  [401, '{"error":null}'],
  [403, "<html>Forbidden</html>"],
];

async function tokens({ endpoints }: Provider, { credential }: Subject): Promise<void> {
  for (const { auth } of endpoints) {
    if (typeof auth !== "object" || !("sign" in auth) || !auth.refused) continue;
    for (const [status, text] of REFUSALS) {
      const refusal = {
        status,
        headers: {},
        body: Buffer.from(text),
        signal: pretend.call().signal,
      };
      try {
        const over: unknown = await auth.refused(
          freeze(refusal),
          freeze({ ...credential }) as never,
        );
        assert.equal(typeof over, "boolean", "refused() answers yes or no");
      } catch (error) {
        assert.ok(faultOf(error), `refused() throws something that is no fault: ${String(error)}`);
      }
    }
  }
}

/** The laws of each endpoint's protocol, in this provider's dialect, over what is recorded of it. */
async function decoders(provider: Provider, subject: Subject): Promise<void> {
  for (const { protocol, recordings } of recorded(provider, subject)) {
    const laws = protocolLaws(protocol, { recordings, trials: 10 });
    for (const law of laws) await law.run().catch((error: Error) => fail(law.name, error));
  }
}

const fail = (name: string, error: Error): never => {
  throw new Error(`${name}: ${error.message}`, { cause: error });
};
