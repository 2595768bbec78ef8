// Opens a provider's WebSocket: the checks, hooks, and credential of any request, then the
// handshake. A rejected handshake causes the same fault as a rejected request.
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocket, type ClientOptions } from "ws";
import { BOUNDS } from "../../lib/bounds.ts";
import { isPromise } from "../../lib/is-promise.ts";
import { createFault } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { EndpointSocket } from "../../plugin/provider.ts";
import { parseError } from "../../protocols/failure/parse-error.ts";
import type { HostCall } from "../exchange/call.ts";
import type { EndpointTransport } from "../exchange/mounted.ts";
import { SECRET_HEADERS } from "../exchange/secret-headers.ts";
import { createTraceHeaders } from "../exchange/trace.ts";
import { attributeFault } from "../faults/fault-source.ts";
import { requireSyncResult } from "../hooks/hook-guard.ts";
import { pinPolicy } from "../privacy/zero-retention.ts";
import { createAuthHeaders, renewToken, tokenVersion } from "./credential.ts";
import { checkBeforeEncoding, checkBeforeSending } from "./outgoing-checks.ts";
import { OutgoingRequest } from "./outgoing-request.ts";
import { toProviderFault } from "./provider-failure.ts";

/** Time in milliseconds within which a provider must answer the handshake. */
const HANDSHAKE_TIMEOUT_MS = 15_000;
/** Time in milliseconds within which a provider must answer a close frame. */
const CLOSE_TIMEOUT_MS = 2_000;

/** Bounds on the messages of a connection. */
export interface MessageBounds {
  readonly maxPayload: number;
  readonly maxFragments: number;
}

/** Opens the socket of an endpoint. Resolves when it is open, and paused. */
export async function openProviderSocket(
  call: HostCall,
  socket: EndpointSocket,
  bounds: MessageBounds,
): Promise<WebSocket> {
  try {
    return await openSigned(call, socket, bounds, () => signRequest(call, "GET", socket));
  } catch (problem) {
    const fault = problem instanceof HandshakeRejection ? problem.toError() : problem;
    throw attributeFault(fault, "target", call.provider);
  }
}

/**
 * Opens a socket for a request that has passed every check. Its headers become the headers of the
 * handshake. Rejects with a `HandshakeRejection` if the provider does not accept it.
 */
export function openRequestSocket(
  call: HostCall,
  socket: EndpointSocket,
  headers: HeadersOut,
  bounds: MessageBounds,
): Promise<WebSocket> {
  const transport = call.candidate.mounted.endpoint.transport!;
  const out = new OutgoingRequest({
    method: "GET",
    path: typeof socket.path === "string" ? socket.path : socket.path(call),
    body: null,
  });
  for (const name in headers) out.setHeader(name, headers[name]);
  const path = pathOf(transport, out);
  return openSigned(call, socket, bounds, async () => ({
    path,
    headers: { ...out.headers, ...(await sign(call, transport, out, path)) },
  }));
}

/** Opens a socket. If the token has expired, signs and opens the socket again with a new token. */
async function openSigned(
  call: HostCall,
  socket: EndpointSocket,
  bounds: MessageBounds,
  signed: () => Promise<SignedRequest>,
): Promise<WebSocket> {
  const { credential, endpoint } = call.candidate.mounted;
  const transport = endpoint.transport!;
  const { auth } = transport.definition;
  const version = tokenVersion(auth, credential);
  const attempt = async () => connect(call, transport, await signed(), socket, bounds);
  try {
    return await attempt();
  } catch (problem) {
    const isExpired =
      problem instanceof HandshakeRejection &&
      (await renewToken(auth, credential, version, () => problem, problem.status));
    if (isExpired) return attempt();
    throw problem;
  }
}

/** A request that has passed every check, with its credential. */
export interface SignedRequest {
  readonly path: string;
  readonly headers: HeadersOut;
}

/** Creates a request without a JSON body, with the headers that each request to the endpoint has. */
export async function signRequest(
  call: HostCall,
  method: string,
  of: Pick<EndpointSocket, "path" | "headers">,
): Promise<SignedRequest> {
  const x = call.exchange;
  const transport = call.candidate.mounted.endpoint.transport!;
  const { definition } = transport;
  checkBeforeEncoding(call);
  pinPolicy(call);
  const out = new OutgoingRequest({
    method,
    path: typeof of.path === "string" ? of.path : of.path(call),
    body: null,
  });
  for (const [name, value] of Object.entries({ ...definition.headers, ...of.headers }))
    out.setHeader(name, value);
  // Client headers were not reviewed for zero data retention.
  if (x.privacy === "off")
    for (const name of definition.protocol.headers?.request ?? []) {
      const value = x.state.connection.req.headers[name];
      if (value !== undefined && !SECRET_HEADERS.has(name))
        out.setHeader(name, Array.isArray(value) ? value.join(", ") : value);
    }
  requireSyncResult(definition.prepare?.(out, call));
  x.state.frontend.hooks.prepare(out, call);
  const trace = createTraceHeaders(call);
  for (const name in trace) out.setHeader(name, trace[name]);
  checkBeforeSending(call, out);
  const path = pathOf(transport, out);
  return { path, headers: { ...out.headers, ...(await sign(call, transport, out, path)) } };
}

const pathOf = ({ pathPrefix }: EndpointTransport, { path }: OutgoingRequest): string =>
  `${pathPrefix}${path.startsWith("/") ? "" : "/"}${path}`;

async function sign(
  call: HostCall,
  { definition, origin }: EndpointTransport,
  out: OutgoingRequest,
  path: string,
): Promise<HeadersOut> {
  try {
    const signing = createAuthHeaders(definition.auth, call.candidate.mounted.credential, () => ({
      method: out.method,
      url: new URL(origin + path),
      headers: { ...out.headers },
      body: null,
      signal: call.exchange.signal,
    }));
    return isPromise(signing) ? await signing : signing;
  } catch (problem) {
    throw toProviderFault(call, problem);
  }
}

function connect(
  call: HostCall,
  transport: EndpointTransport,
  { path, headers }: SignedRequest,
  { subprotocols = [] }: EndpointSocket,
  bounds: MessageBounds,
): Promise<WebSocket> {
  const origin = new URL(transport.origin);
  const options: ClientOptions & { closeTimeout: number } = {
    ...bounds,
    headers: definedOnly(headers),
    perMessageDeflate: false,
    followRedirects: false,
    handshakeTimeout: call.candidate.mounted.provider.timeouts.connectMs + HANDSHAKE_TIMEOUT_MS,
    closeTimeout: CLOSE_TIMEOUT_MS,
    createConnection: ((_options: unknown, done: (error: Error | null, made?: Socket) => void) => {
      const { hostname, host, protocol, port } = origin;
      transport.connect({ hostname, host, protocol, port }, (error, made) =>
        error ? done(error) : done(null, made!),
      );
    }) as never,
  };
  return new Promise((resolve, reject) => {
    const url = `${transport.origin.replace(/^http/, "ws")}${path}`;
    const ws = new WebSocket(url, [...subprotocols], options);
    const abort = () => ws.terminate();
    call.exchange.signal.addEventListener("abort", abort);
    const finish = () => call.exchange.signal.removeEventListener("abort", abort);
    ws.once("open", () => {
      finish();
      // The connection lives longer than the call, which these listeners would keep in memory.
      ws.removeAllListeners("unexpected-response");
      ws.off("error", failed);
      ws.on("error", ignoreError);
      ws.pause();
      resolve(ws);
    });
    ws.once("unexpected-response", (request, response) => {
      finish();
      readRejection(response)
        .then(reject, reject)
        .finally(() => request.destroy());
    });
    const failed = (error: NodeJS.ErrnoException) => {
      finish();
      reject(
        call.exchange.state.connection.isDisconnected
          ? createFault("canceled", "The client disconnected.")
          : createFault("upstream", "The provider's WebSocket could not be opened.", {
              code: "upstream_unreachable",
              cause: error,
            }),
      );
    };
    ws.once("error", failed);
    if (call.exchange.signal.aborted) abort();
  });
}

/** The connection is closed next, and its owner observes that. */
const ignoreError = (): void => {};

/** Reads the response to a rejected handshake, and rejects with it. */
async function readRejection(response: IncomingMessage): Promise<never> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    size += (chunk as Buffer).length;
    if (size > BOUNDS.errorBody.max) break;
    chunks.push(chunk as Buffer);
  }
  throw new HandshakeRejection(response.statusCode ?? 502, response.headers, Buffer.concat(chunks));
}

/** The response of a provider that did not accept the handshake. */
export class HandshakeRejection extends Error {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;

  constructor(status: number, headers: IncomingMessage["headers"], body: Buffer) {
    super(`The provider answered the WebSocket handshake with status ${status}.`);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  /** Returns the error that a request with this response would have. */
  toError(): Error {
    if (this.status < 400)
      return createFault("upstream", this.message, { code: "upstream_handshake" });
    const { kind, message, ...more } = parseError(this.status, this.headers, this.body);
    return createFault(kind, message, more);
  }
}

/** Returns the headers that have a value. */
export const definedOnly = (headers: HeadersOut): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
