// Checks of a provider: its endpoints must be well-formed, its requests must carry the credential
// where it is declared and nowhere else, and its work must stop when it is aborted.
import assert from "node:assert/strict";
import { getFault } from "../../model/error.ts";
import type { Operation } from "../../model/request.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Provider } from "../../plugin/provider.ts";
import type { Check } from "../check.ts";
import { deepFreeze } from "../freeze.ts";
import { createOutgoing } from "../outgoing.ts";
import * as fakes from "../fakes.ts";
import { protocolChecks } from "../protocol-laws.ts";
import { resolveEndpointUrl, signRequest } from "./provider-client.ts";
import { findLeak, type ConformanceSubject } from "./subject.ts";
import { createSetupCheck } from "./side-effects.ts";
import { checkFieldsCarried, checkStreaming, checkExpected } from "./native-endpoint.ts";
import { recordedEndpoints } from "./recorded-endpoints.ts";
import { checkEndToEnd } from "./end-to-end.ts";
import {
  checkAborts,
  isProtocolEndpoint,
  checkNative,
  checkFailingUpstreams,
} from "./operation.ts";

/**
 * Returns the checks of a provider: model lists, readiness, decoders, native endpoints, and aborts.
 */
export function providerChecks(subject: ConformanceSubject): Check[] {
  const each = createSetupCheck<Provider>(subject);
  return [
    each("endpoints are well-formed", checkShape),
    each("requests carry the credential where it was promised, and nowhere else", checkSentRequest),
    each("a scheme with a token says of any refusal whether the token is over", checkTokens),
    each("an abort ends the work and its connection while upstream is silent", checkAborts),
    each("an upstream that fails is an error, not a hang", checkFailingUpstreams),
    each("native endpoints obey the grammar", checkNative),
    each("native endpoints say what is recorded: text, counts, end and errors", checkExpected),
    each(
      "native endpoints send each field of a request, or say that it is lost",
      checkFieldsCarried,
    ),
    each("a native answer reaches the client as it comes", checkStreaming),
    each(
      "its decoders keep the laws of their protocols, over recordings cut at every byte",
      checkDecoders,
    ),
    each("through a gateway, clients get what upstream says, as it says it", checkEndToEnd),
  ];
}

function checkShape(
  { endpoints, listModels, checkReady }: Provider,
  { credential }: ConformanceSubject,
): void {
  assert.ok(Array.isArray(endpoints), "endpoints is a list");
  for (const endpoint of endpoints) {
    const native = !isProtocolEndpoint(endpoint);
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
  for (const part of [listModels, checkReady])
    assert.ok(part === undefined || typeof part === "function");
}

/**
 * Builds one request as it would be sent: encoded, prepared by protocol and endpoint, and signed.
 */
async function checkSentRequest(
  { endpoints }: Provider,
  { credential, secrets }: ConformanceSubject,
): Promise<void> {
  for (const endpoint of endpoints.filter(isProtocolEndpoint)) {
    const { client, operationSpec, id } = endpoint.protocol as Protocol<Operation>;
    const call = fakes.call({ protocol: id });
    const request = deepFreeze(operationSpec.sampleRequest("model"));
    const path = endpoint.paths?.["generate"] ?? client!.paths.generate;
    const out = createOutgoing(client!.encodeRequest(request, call), {
      path: typeof path === "string" ? path : path(call),
      headers: { ...endpoint.headers },
    });
    client!.prepare?.(out, call);
    endpoint.prepare?.(out, call);
    const url = resolveEndpointUrl(endpoint, out.path);
    assert.equal(url.origin, new URL(endpoint.base).origin, "a path stays below the base");
    const text = JSON.stringify(out.body);
    const signed = await signRequest(
      endpoint,
      {
        method: out.method,
        url,
        headers: out.headers,
        body: Buffer.from(text),
        signal: call.signal,
      },
      deepFreeze({ ...credential }),
    );
    for (const [what, thing] of [
      ["address", url.href],
      ["body", text],
      ["other headers", { ...out.headers }],
    ] as const)
      assert.equal(findLeak(thing, secrets), undefined, `the credential stands in the ${what}`);
    if (typeof endpoint.auth === "object" && "header" in endpoint.auth && secrets.length > 0)
      assert.ok(signed[endpoint.auth.header], `${endpoint.auth.header} carries the credential`);
    for (const [name, value] of Object.entries(signed)) {
      assert.equal(name, name.toLowerCase(), "header names are lower case");
      assert.match(value ?? "", /^[\t\x20-\x7e]*$/, `${name} can be written as a header`);
    }
  }
}

/**
 * Responses that do not come from the provider itself but can arrive in its place: a proxy's page,
 * truncated text, or nothing.
 */
const REJECTED_RESPONSES: readonly (readonly [number, string])[] = [
  [401, ""],
  [401, "{"],
  [401, '{"error":null}'],
  [403, "<html>Forbidden</html>"],
];

async function checkTokens(
  { endpoints }: Provider,
  { credential }: ConformanceSubject,
): Promise<void> {
  for (const { auth } of endpoints) {
    if (typeof auth !== "object" || !("sign" in auth) || !auth.renewToken) continue;
    for (const [status, text] of REJECTED_RESPONSES) {
      const refusal = {
        status,
        headers: {},
        body: Buffer.from(text),
        signal: fakes.call().signal,
      };
      try {
        const over: unknown = await auth.renewToken(
          deepFreeze(refusal),
          deepFreeze({ ...credential }) as never,
        );
        assert.equal(typeof over, "boolean", "refused() answers yes or no");
      } catch (error) {
        assert.ok(getFault(error), `refused() throws something that is no fault: ${String(error)}`);
      }
    }
  }
}

/** Runs the protocol checks of each endpoint, in this provider's dialect, over its recordings. */
async function checkDecoders(provider: Provider, subject: ConformanceSubject): Promise<void> {
  for (const { protocol, recordings } of recordedEndpoints(provider, subject)) {
    const laws = protocolChecks(protocol, { recordings, trials: 10 });
    for (const law of laws) await law.run().catch((error: Error) => failCheck(law.name, error));
  }
}

const failCheck = (name: string, error: Error): never => {
  throw new Error(`${name}: ${error.message}`, { cause: error });
};
