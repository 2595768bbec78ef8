// Token counts and by-ID operations. They cost no money, but they count against a key's request
// limits.
import { estimateInputTokens } from "../../money/estimate.ts";
import { fail, getFault, createFault } from "../../model/error.ts";
import { attributeFault } from "../faults/fault-source.ts";
import { HostCall, recordSentCall } from "../exchange/call.ts";
import {
  encodeRequest,
  createResponseHeaders,
  findOperationPath,
} from "../upstream/encode-request.ts";
import type { HeadersIn } from "../../model/values.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { sendRequest } from "../upstream/send-request.ts";
import { checkBeforeEncoding } from "../upstream/outgoing-checks.ts";
import { pinPolicy } from "../privacy/zero-retention.ts";
import { createDiagnosticHeaders } from "../response/diagnostic-headers.ts";
import type { RoutePlan } from "./route.ts";
import {
  BoundedByteCounter,
  readResponseBody,
  type UpstreamReply,
} from "../upstream/upstream-http-response.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { writeSettleRow, waitForRow } from "../metering/settle-call.ts";
import { reserveUnbilled } from "../metering/charges.ts";
import { scan } from "../../lib/json/json-scanner.ts";
import { BufferedBytes } from "../response/buffered-bytes.ts";

/**
 * Counts the tokens of a request. If the provider supports counting, it is called. Otherwise, the
 * count is estimated, and a response header reports this. A token count uses request limits like
 * any other request and is not billed.
 */
export async function countTokens(x: HostExchange, plan: RoutePlan): Promise<void> {
  const { frontend, connection, calls } = x.state;
  const { server } = frontend;
  if (!server?.encodeCount)
    return fail("unsupported", `${x.frontend} does not support token counting.`);
  const call = new HostCall(x, plan.candidates[0]!, 1);
  calls.last = call;
  recordSentCall(call);
  // The provider's confirmation of zero retention arrives only with its response. A token count
  // does not justify sending private content before that.
  const mustEstimate = x.privacy !== "off" && call.policy.attest !== undefined;
  const tokens = await runUnbilled(
    call,
    async () => (mustEstimate ? undefined : await countByProvider(call)) ?? estimateTokens(call),
  );
  const body = Buffer.from(JSON.stringify(server.encodeCount(tokens)));
  connection.res.writeHead(200, {
    "content-type": "application/json",
    "content-length": String(body.length),
    ...createHeaders(call, {}),
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
  const { transport } = endpoint;
  const protocol = endpoint.protocol!;
  const client = protocol.client!;
  if (!client.decodeCount || !findOperationPath("count", transport.definition, protocol))
    return undefined;
  pinPolicy(call);
  const out = encodeRequest(call, protocol, transport.definition);
  const response = await sendRequest(call, transport, out);
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

/** Creates the headers that every unbilled response has. */
function createHeaders(call: HostCall, upstream: HeadersIn): Record<string, string | undefined> {
  const { state } = call.exchange;
  const own = createResponseHeaders(call, upstream);
  return {
    ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)),
    ...Object.fromEntries(createDiagnosticHeaders(state, true)),
    ...Object.fromEntries(state.outcome.headers ?? []),
  };
}

/** Runs `work` with a ledger row: reserved before, settled afterwards, without a price. */
async function runUnbilled<T>(call: HostCall, work: () => Promise<T>): Promise<T> {
  await reserveUnbilled(call);
  const startedAt = performance.now();
  let outcome = "ok";
  try {
    return await work();
  } catch (problem) {
    outcome = getFault(problem)?.kind ?? "internal";
    throw problem;
  } finally {
    call.exchange.state.connection.externalWaitMs += performance.now() - startedAt;
    await settleUnbilled(call, outcome);
  }
}

function settleUnbilled(call: HostCall, outcome: string): Promise<void> {
  const total = Math.round(performance.now() - call.startedAt);
  return waitForRow(
    writeSettleRow(
      call,
      {
        do: "settle",
        at: wallClock(),
        attempt: call.attemptId,
        state: outcome === "ok" ? "exact" : "void",
        usage: {},
        costNano: 0n,
        outcome,
        ms: { total },
      },
      [],
    ),
  );
}

const CLIENT_DISCONNECTED = "The client disconnected.";
/**
 * Relays a by-ID operation of a protocol to the provider that holds the ID, with the client's
 * method. There is no translation: the response is forwarded unchanged, except for the model name
 * in JSON.
 */
export async function relay(x: HostExchange, plan: RoutePlan): Promise<void> {
  const candidate = plan.candidates.find(
    (s) => s.mode === "passthrough" && s.mounted.provider.stateMode === "relay",
  );
  if (!candidate)
    return fail("not_found", "No object with this ID was found.", { code: "not_found" });
  const call = new HostCall(x, candidate, 1);
  x.state.calls.last = call;
  pinPolicy(call);
  return runUnbilled(call, () => relayCall(x, call));
}

async function relayCall(x: HostExchange, call: HostCall): Promise<void> {
  const { endpoint } = call.candidate.mounted;
  const { gen, connection } = x.state;
  const out = encodeRequest(call, endpoint.protocol!, endpoint.transport!.definition);
  recordSentCall(call);
  const response = await sendRequest(call, endpoint.transport!, out);
  connection.disconnectListeners.push(() =>
    response.abort(createFault("canceled", CLIENT_DISCONNECTED)),
  );
  if (connection.isDisconnected) {
    const gone = createFault("canceled", CLIENT_DISCONNECTED);
    response.abort(gone);
    throw gone;
  }
  const mime = gen.mask(String(response.headers["content-type"] ?? "application/json"));
  const headers = { "content-type": mime, ...createHeaders(call, response.headers) };
  if (mime.includes("json")) {
    const body = withModelName(await readResponseBody(response, new BufferedBytes(call)), call);
    const length = String(body.length);
    connection.res.writeHead(response.status, { ...headers, "content-length": length });
    connection.bytesOut += body.length;
    connection.res.end(body);
    return undefined;
  }
  connection.res.writeHead(response.status, headers);
  return pipeToClient(x, response);
}

/**
 * Replaces the model name in the body, so that a client that reads the object again receives the
 * same model name.
 */
function withModelName(body: Buffer, call: HostCall): Buffer {
  const seen = scan(body);
  const span = seen.flaw ? undefined : seen.spans.get("model");
  if (!span) return body;
  const name = Buffer.from(JSON.stringify(call.id));
  return Buffer.concat([body.subarray(0, span.from), name, body.subarray(span.to)]);
}

function pipeToClient(x: HostExchange, response: UpstreamReply): Promise<void> {
  const { connection } = x.state;
  const { res } = connection;
  return new Promise<void>((resolve, reject) => {
    response.pipeTo({
      onData(chunk) {
        connection.bytesOut += chunk.length;
        if (res.write(chunk)) return;
        response.pause();
        res.once("drain", () => response.resume());
      },
      onEnd(problem) {
        if (problem !== undefined) return reject(problem);
        res.end();
        resolve();
      },
    });
  });
}
