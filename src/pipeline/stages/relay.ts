import { scan } from "../../lib/json/json-scanner.ts";
import { fail, createFault } from "../../model/error.ts";
import { runUnbilled } from "./unbilled.ts";
import { createDiagnosticHeaders } from "../response/diagnostic-headers.ts";
import { BufferedBytes } from "../response/buffered-bytes.ts";
import { HostCall, recordSentCall } from "../exchange/call.ts";
import { encodeRequest, createResponseHeaders } from "../upstream/encode-request.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { sendRequest } from "../upstream/send-request.ts";
import { pinPolicy } from "../privacy/zero-retention.ts";
import type { RoutePlan } from "./route.ts";
import { readResponseBody, type UpstreamHttpResponse } from "../upstream/upstream-http-response.ts";

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
  const { gen, connection, outcome } = x.state;
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
  const head = Object.entries(createResponseHeaders(call, response.headers)).filter(
    ([, value]) => value !== undefined,
  );
  const headers = {
    "content-type": mime,
    ...Object.fromEntries(head),
    ...Object.fromEntries(createDiagnosticHeaders(x.state, true)),
    ...Object.fromEntries(outcome.headers ?? []),
  };
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
 * same name as the first time.
 */
function withModelName(body: Buffer, call: HostCall): Buffer {
  const seen = scan(body);
  const span = seen.flaw ? undefined : seen.spans.get("model");
  if (!span) return body;
  const name = Buffer.from(JSON.stringify(call.id));
  return Buffer.concat([body.subarray(0, span.from), name, body.subarray(span.to)]);
}

function pipeToClient(x: HostExchange, response: UpstreamHttpResponse): Promise<void> {
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
