// Checks of a provider. Its endpoints must be well-formed, and its work must stop when it is
// aborted. Its requests must contain the credential at the declared place and nowhere else.
import assert from "node:assert/strict";
import { getFault } from "../../model/error.ts";
import type { Operation } from "../../model/request.ts";
import type { Protocol } from "../../plugin/protocol.ts";
import type { Provider } from "../../plugin/provider.ts";
import { type Check } from "../check.ts";
import { deepFreeze } from "../freeze.ts";
import { createOutgoing } from "../outgoing.ts";
import * as fakes from "../fakes.ts";
import { protocolChecks } from "../protocol-laws.ts";
import { resolveEndpointUrl, signRequest } from "./provider-client.ts";
import { findLeak, type ConformanceSubject } from "./subject.ts";
import { createSetupCheck } from "./side-effects.ts";
import { checkFieldsCarried, checkStreaming, checkExpected } from "./native-endpoint.ts";
import { batchChecks } from "./batches.ts";
import { backgroundChecks } from "./background.ts";
import { videoChecks } from "./videos.ts";
import { recordedEndpoints } from "./recorded-endpoints.ts";
import { checkEndToEnd } from "./end-to-end.ts";
import { checkProviderSessions } from "./sockets.ts";
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
    each("sessions of sockets withstand hostile messages", checkProviderSessions),
    each("requests contain the credential only where the endpoint declares it", checkSentRequest),
    each("renewToken() reports whether the token has expired", checkTokens),
    each(
      "an abort ends the operation and its connection while the upstream is silent",
      checkAborts,
    ),
    each("an upstream failure causes an error, not a hang", checkFailingUpstreams),
    each("native endpoints emit valid event streams", checkNative),
    each("native endpoints decode recordings: text, usage, finish, and errors", checkExpected),
    each("native endpoints send each request field or report it as dropped", checkFieldsCarried),
    each("native endpoints stream responses without delay", checkStreaming),
    each("its decoders pass the protocol checks on recordings split at every byte", checkDecoders),
    each("clients of a gateway receive the upstream's responses unchanged", checkEndToEnd),
    ...batchChecks(subject),
    ...videoChecks(subject),
    ...backgroundChecks(subject),
  ];
}

function checkShape(
  { endpoints, listModels, checkReady }: Provider,
  { credential }: ConformanceSubject,
): void {
  assert.ok(Array.isArray(endpoints), "endpoints must be an array");
  for (const endpoint of endpoints) {
    const native = !isProtocolEndpoint(endpoint);
    if (!native) {
      assert.ok(
        endpoint.protocol.client ?? endpoint.protocol.socket,
        `protocol ${endpoint.protocol.id} has no client half and no socket half, and an endpoint needs one`,
      );
      assert.ok(endpoint.base, "an endpoint with a protocol must have a base URL");
    }
    if (endpoint.base !== undefined) {
      const { protocol } = new URL(endpoint.base);
      assert.ok(/^https?:$/.test(protocol), `base URL ${endpoint.base} must use http or https`);
      assert.ok(!/[?#]/.test(endpoint.base), `base URL ${endpoint.base} must not have a query`);
    }
    for (const origin of endpoint.origins ?? [])
      assert.match(origin, /^https?:\/\/(\*\.)?[^/*]+$/, `${origin} is not a valid origin`);
    if (typeof endpoint.auth === "object" && "header" in endpoint.auth) {
      assert.equal(
        endpoint.auth.header,
        endpoint.auth.header.toLowerCase(),
        "header names must be lowercase",
      );
      assert.ok(
        endpoint.auth.field in credential || Object.keys(credential).length === 0,
        `auth uses ${endpoint.auth.field}, which the given credential does not have`,
      );
    }
    for (const name of Object.keys(endpoint.headers ?? {}))
      assert.equal(name, name.toLowerCase(), "header names must be lowercase");
  }
  for (const part of [listModels, checkReady])
    assert.ok(part === undefined || typeof part === "function");
}

/**
 * Builds one request in the form in which it would be sent: encoded, prepared by protocol and
 * endpoint, and signed.
 */
async function checkSentRequest(
  { endpoints }: Provider,
  { credential, secrets }: ConformanceSubject,
): Promise<void> {
  for (const endpoint of endpoints.filter(isProtocolEndpoint)) {
    const { client, operationSpec, id } = endpoint.protocol as Protocol<Operation>;
    // A protocol that is only relayed sends no requests.
    if (!client) continue;
    const call = fakes.call({ protocol: id });
    const request = deepFreeze(operationSpec.sampleRequest("model"));
    const path = endpoint.paths?.["generate"] ?? client.paths.generate;
    const out = createOutgoing(client.encodeRequest(request, call), {
      path: typeof path === "string" ? path : path(call),
      headers: { ...endpoint.headers },
    });
    client.prepare?.(out, call);
    endpoint.prepare?.(out, call);
    const url = resolveEndpointUrl(endpoint, out.path);
    assert.equal(url.origin, new URL(endpoint.base).origin, "a path must stay below the base URL");
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
      assert.equal(
        findLeak(thing, secrets),
        undefined,
        `the credential must not appear in the ${what}`,
      );
    if (typeof endpoint.auth === "object" && "header" in endpoint.auth && secrets.length > 0)
      assert.ok(
        signed[endpoint.auth.header],
        `header ${endpoint.auth.header} must contain the credential`,
      );
    for (const [name, value] of Object.entries(signed)) {
      assert.equal(name, name.toLowerCase(), "header names must be lowercase");
      assert.match(
        value ?? "",
        /^[\t\x20-\x7e]*$/,
        `the value of ${name} is not a valid header value`,
      );
    }
  }
}

/**
 * Responses that the provider did not send but that can arrive in its place: a proxy's page,
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
        assert.equal(typeof over, "boolean", "renewToken() must return a boolean");
      } catch (error) {
        assert.ok(
          getFault(error),
          `renewToken() throws an error that is not a fault: ${String(error)}`,
        );
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
