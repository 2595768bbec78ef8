import { isPromise } from "../../lib/is-promise.ts";
import { BOUNDS } from "../../lib/bounds.ts";
import { fail, createFault, getFault } from "../../model/error.ts";
import type { HeadersIn, HeadersOut } from "../../model/values.ts";
import { attributeFault } from "../faults/fault-source.ts";
import { createAuthHeaders, renewToken, tokenVersion } from "./credential.ts";
import type { HostCall } from "../exchange/call.ts";
import { isPaidByClient } from "../exchange/client-credential.ts";
import type { LineReply } from "../exchange/exchange.ts";
import type { EndpointTransport } from "../exchange/mounted.ts";
import { flattenHeaders, type OutgoingRequest, type BodyChunks } from "./outgoing-request.ts";
import { clientFaultKind, toProviderFault } from "./provider-failure.ts";
import { markAccountLimit } from "../faults/rate-limits.ts";
import { timeoutsFor } from "../targets/timeouts.ts";
import { HandshakeRejection } from "./provider-socket.ts";
import { sendOverSocket } from "./send-over-socket.ts";
import {
  UpstreamHttpResponse,
  readErrorBody,
  type UpstreamReply,
} from "./upstream-http-response.ts";
import { yieldForLargeBody } from "../../lib/yield.ts";

/**
 * Details of a provider's rejection in addition to the fault. In passthrough mode, the provider's
 * own body is forwarded.
 */
export interface UpstreamErrorResponse {
  status: number;
  headers: HeadersIn;
  body: Buffer;
  /** Whether the call had the client's own credential, so that the error concerns its account. */
  isPaidByClient: boolean;
}

const errorResponses = new WeakMap<object, UpstreamErrorResponse>();
export const errorResponseOf = (problem: unknown): UpstreamErrorResponse | undefined =>
  typeof problem === "object" && problem !== null ? errorResponses.get(problem) : undefined;

/**
 * Sends a request and reads the response headers. For any status other than 2xx, the codec creates
 * the fault.
 */
export async function sendRequest(
  call: HostCall,
  wire: EndpointTransport,
  out: OutgoingRequest,
): Promise<UpstreamReply> {
  try {
    const yielded = yieldForLargeBody(call.exchange.state.body.received!.inputBytes);
    if (yielded) await yielded;
    // Requests over HTTP do not pay for another turn.
    const { lane } = call.exchange.state.connection;
    const overSocket = lane && (await sendOverSocketOrReject(call, wire, out));
    if (overSocket && isSuccess(overSocket)) return overSocket;
    const { auth } = wire.definition;
    const path = `${wire.pathPrefix}${out.path.startsWith("/") ? "" : "/"}${out.path}`;
    const unsigned: UnsignedRequest = { out, path, body: out.toChunks() };
    const version = tokenVersion(auth, call.candidate.mounted.credential);
    const response = overSocket ?? (await signAndDispatch(call, wire, unsigned));
    return isSuccess(response)
      ? response
      : await retryWithRenewedToken(call, wire, unsigned, response, version);
  } catch (problem) {
    throw attributeFault(problem, "target", call.provider);
  }
}

/** Sends the request over a WebSocket, unless it must be sent over HTTP. */
async function sendOverSocketOrReject(
  call: HostCall,
  wire: EndpointTransport,
  out: OutgoingRequest,
): Promise<UpstreamReply | undefined> {
  try {
    return await sendOverSocket(call, wire, out);
  } catch (problem) {
    if (!(problem instanceof HandshakeRejection)) throw problem;
    call.failurePoint = "rejected";
    return throwUpstreamError(call, problem, problem.body);
  }
}

/** Sends a request that was rejected because of an expired token again, with a new token. */
async function retryWithRenewedToken(
  call: HostCall,
  wire: EndpointTransport,
  unsigned: UnsignedRequest,
  refusal: UpstreamReply,
  version: ReturnType<typeof tokenVersion>,
): Promise<UpstreamReply> {
  const { credential } = call.candidate.mounted;
  const { auth } = wire.definition;
  let response: UpstreamReply = refusal;
  let errorBody = await readErrorBody(response, BOUNDS.errorBody.max);
  const { status, headers } = response;
  if (
    await renewToken(
      auth,
      credential,
      version,
      () => ({ status, headers, body: errorBody }),
      status,
    )
  ) {
    response = await signAndDispatch(call, wire, unsigned);
    if (isSuccess(response)) return response;
    errorBody = await readErrorBody(response, BOUNDS.errorBody.max);
  }
  return throwUpstreamError(call, response, errorBody);
}

const isSuccess = ({ status }: UpstreamReply): boolean => status >= 200 && status < 300;

/** The request without its signature. */
interface UnsignedRequest {
  readonly out: OutgoingRequest;
  readonly path: string;
  readonly body: BodyChunks | null;
}

/** Signs and sends the request. Resolves when the response headers arrive, with any status. */
function signAndDispatch(
  call: HostCall,
  wire: EndpointTransport,
  unsigned: UnsignedRequest,
): Promise<UpstreamHttpResponse> {
  const { out, path, body } = unsigned;
  const failed = (problem: unknown): never => {
    throw toProviderFault(call, problem);
  };
  if (isPaidByClient(call.candidate)) {
    const own = call.exchange.state.admission.clientCredential;
    const { endpoint } = call.candidate.mounted;
    return dispatchSigned(call, wire, unsigned, own?.send(endpoint) ?? rejectWithoutCredential());
  }
  let signing: ReturnType<typeof createAuthHeaders>;
  try {
    signing = createAuthHeaders(wire.definition.auth, call.candidate.mounted.credential, () => ({
      method: out.method,
      url: new URL(wire.origin + path),
      headers: { ...out.headers },
      body: body && body.toBuffer(),
      signal: call.exchange.signal,
    }));
  } catch (problem) {
    return failed(problem);
  }
  if (!isPromise(signing)) return dispatchSigned(call, wire, unsigned, signing);
  return signWithTimeout(signing).then((own) => dispatchSigned(call, wire, unsigned, own), failed);
}

const rejectWithoutCredential = (): never =>
  fail("internal", "A call that the client pays has no credential.");

/**
 * Maximum time in milliseconds to sign a request. A scheme that needs a token calls another
 * service.
 */
const SIGN_TIMEOUT_MS = 30_000;

async function signWithTimeout(signing: Promise<HeadersOut>): Promise<HeadersOut> {
  let late: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      signing,
      new Promise<never>((_, reject) => {
        late = setTimeout(
          () =>
            reject(
              createFault(
                "upstream_auth",
                "The provider's access token was not available in time.",
                {
                  code: "token_timeout",
                },
              ),
            ),
          SIGN_TIMEOUT_MS,
        );
      }),
    ]);
  } finally {
    clearTimeout(late);
  }
}

function dispatchSigned(
  call: HostCall,
  wire: EndpointTransport,
  { out, path, body }: UnsignedRequest,
  own: HeadersOut,
): Promise<UpstreamHttpResponse> {
  const x = call.exchange;
  if (x.state.connection.isDisconnected) fail("canceled", "The client disconnected.");
  const response = new UpstreamHttpResponse(x.state.gen.timerWheel, timeoutsFor(call));
  call.onCancel((reason) => response.abort(reason));
  x.state.connection.disconnectListeners.push(() => {
    if (response.status === 0) response.abort(createFault("canceled", "The client disconnected."));
  });
  return response.dispatch(call, wire, {
    method: out.method,
    path,
    headers: flattenHeaders(out.headers, own),
    body,
  });
}

/** Returns the response of a line whose result was read from a batch. */
export function receiveLineReply(call: HostCall, { status, body }: LineReply): UpstreamReply {
  const reply: UpstreamReply = {
    status,
    headers: { "content-type": "application/json" },
    pipeTo(sink) {
      sink.onData(body);
      sink.onEnd();
    },
    pause() {},
    resume() {},
    limitRemainingTime() {},
    abort() {},
  };
  if (isSuccess(reply)) return reply;
  call.failurePoint = "rejected";
  try {
    const start = body.subarray(0, BOUNDS.errorBody.max);
    return throwUpstreamError(call, reply, start);
  } catch (problem) {
    throw attributeFault(problem, "target", call.provider);
  }
}

/** Throws the fault for a rejection. */
function throwUpstreamError(
  call: HostCall,
  { status, headers }: Pick<UpstreamReply, "status" | "headers">,
  receivedBody: Buffer,
): never {
  const { protocol } = call.candidate.mounted.endpoint;
  const isClients = isPaidByClient(call.candidate);
  const own = isClients ? call.exchange.state.admission.clientCredential : undefined;
  const errorBody = own ? Buffer.from(own.mask(receivedBody.toString())) : receivedBody;
  if (status >= 300 && status < 400)
    fail(
      "upstream",
      `The provider returned a redirect (${status}), and redirects are not followed.`,
      {
        code: "upstream_redirect",
      },
    );
  const { kind, message, ...more } = protocol!.client!.decodeFault(status, headers, errorBody);
  const problem = createFault(isClients ? clientFaultKind(kind, status) : kind, message, more);
  if (!isClients) markAccountLimit(getFault(problem)!, headers);
  // A truncated error body is not valid JSON, so it cannot be forwarded unchanged.
  if (receivedBody.length < BOUNDS.errorBody.max)
    errorResponses.set(problem, { status, headers, body: errorBody, isPaidByClient: isClients });
  throw problem;
}
