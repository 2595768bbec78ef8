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
    (s) => s.mode === "passthrough" && s["~"].provider.stateMode === "relay",
  );
  if (!candidate)
    return fail("not_found", "No object with this ID was found.", { code: "not_found" });
  const call = new HostCall(x, candidate, 1);
  x["~"].lastCall = call;
  pinPolicy(call);
  return runUnbilled(call, () => relayCall(x, call));
}

async function relayCall(x: HostExchange, call: HostCall): Promise<void> {
  const { endpoint } = call.candidate["~"];
  const state = x["~"];
  const out = encodeRequest(call, endpoint.protocol!, endpoint.transport!.definition);
  recordSentCall(call);
  const response = await sendRequest(call, endpoint.transport!, out);
  state.disconnectListeners.push(() =>
    response.abort(createFault("canceled", CLIENT_DISCONNECTED)),
  );
  if (state.isDisconnected) {
    const gone = createFault("canceled", CLIENT_DISCONNECTED);
    response.abort(gone);
    throw gone;
  }
  const mime = state.gen.mask(String(response.headers["content-type"] ?? "application/json"));
  const head = Object.entries(createResponseHeaders(call, response.headers)).filter(
    ([, value]) => value !== undefined,
  );
  const headers = {
    "content-type": mime,
    ...Object.fromEntries(head),
    ...Object.fromEntries(createDiagnosticHeaders(state, true)),
    ...Object.fromEntries(state.responseHeaders ?? []),
  };
  if (mime.includes("json")) {
    const body = withModelName(await readResponseBody(response, new BufferedBytes(call)), call);
    state.res.writeHead(response.status, { ...headers, "content-length": String(body.length) });
    state.bytesOut += body.length;
    state.res.end(body);
    return undefined;
  }
  state.res.writeHead(response.status, headers);
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
  const state = x["~"];
  return new Promise<void>((resolve, reject) => {
    response.pipeTo({
      onData(chunk) {
        state.bytesOut += chunk.length;
        if (state.res.write(chunk)) return;
        response.pause();
        state.res.once("drain", () => response.resume());
      },
      onEnd(problem) {
        if (problem !== undefined) return reject(problem);
        state.res.end();
        resolve();
      },
    });
  });
}
