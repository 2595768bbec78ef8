import { estimateInputTokens } from "../../money/estimate.ts";
import { fail } from "../../model/error.ts";
import { runUnbilled } from "./unbilled.ts";
import { attributeFault } from "../faults/fault-source.ts";
import { HostCall, recordSentCall } from "../exchange/call.ts";
import { encodeRequest, createResponseHeaders } from "../upstream/encode-request.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { sendRequest } from "../upstream/send-request.ts";
import { checkBeforeEncoding } from "../upstream/outgoing-checks.ts";
import { pinPolicy } from "../privacy/zero-retention.ts";
import { createDiagnosticHeaders } from "../response/diagnostic-headers.ts";
import type { RoutePlan } from "./route.ts";
import { BoundedByteCounter, readResponseBody } from "../upstream/upstream-http-response.ts";

/**
 * Counts the tokens of a request. A provider that supports counting is called. Otherwise the count
 * is estimated, and a response header says so. A count uses request limits like any request, and
 * nothing is billed.
 */
export async function countTokens(x: HostExchange, plan: RoutePlan): Promise<void> {
  const { frontend, connection, calls, outcome } = x.state;
  const { server } = frontend;
  if (!server?.encodeCount)
    return fail("unsupported", `${x.frontend} does not support token counting.`);
  const call = new HostCall(x, plan.candidates[0]!, 1);
  calls.last = call;
  recordSentCall(call);
  // Only the headers of a response can attest that nothing is retained, and a count is not worth
  // sending private content without that.
  const mustEstimate = x.privacy !== "off" && call.policy.attest !== undefined;
  const tokens = await runUnbilled(
    call,
    async () => (mustEstimate ? undefined : await countByProvider(call)) ?? estimateTokens(call),
  );
  const body = Buffer.from(JSON.stringify(server.encodeCount(tokens)));
  const head = createResponseHeaders(call, {});
  connection.res.writeHead(200, {
    "content-type": "application/json",
    "content-length": String(body.length),
    ...Object.fromEntries(Object.entries(head).filter(([, value]) => value !== undefined)),
    ...Object.fromEntries(createDiagnosticHeaders(x.state, true)),
    ...Object.fromEntries(outcome.headers ?? []),
  });
  connection.res.end(body);
}

async function countByProvider(call: HostCall): Promise<number | undefined> {
  const { endpoint, credential } = call.candidate.mounted;
  const x = call.exchange;
  if (!endpoint.transport) {
    const native = endpoint.definition;
    if (!("run" in native) || !native.countTokens) return undefined;
    pinPolicy(call);
    checkBeforeEncoding(call);
    return native.countTokens(
      (x.state.body.rewritten ?? x.request) as never,
      call,
      credential.fields,
    );
  }
  const client = endpoint.protocol!.client!;
  const path = endpoint.transport.definition.paths;
  const has = path && "count" in path ? path["count"] : client.paths["count"];
  if (!client.decodeCount || has === undefined) return undefined;
  pinPolicy(call);
  const response = await sendRequest(
    call,
    endpoint.transport,
    encodeRequest(call, endpoint.protocol!, endpoint.transport.definition),
  );
  try {
    return client.decodeCount(
      await readResponseBody(response, new BoundedByteCounter("countResponse")),
    );
  } catch (problem) {
    throw attributeFault(problem, "answer", call.provider);
  }
}

function estimateTokens(call: HostCall): number {
  const x = call.exchange;
  x.setResponseHeader("x-tollgate-estimated", "input_tokens");
  return estimateInputTokens({
    bytes: x.state.body.received!.inputBytes,
    context: call.info.limits?.context,
  });
}
