// Sends a request over a WebSocket of the provider, if the client sent it over one and the endpoint
// has one. Otherwise it is sent over HTTP.
import { BOUNDS } from "../../lib/bounds.ts";
import { createFault, fail, getFault } from "../../model/error.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { Privacy } from "../../model/facts.ts";
import type { EndpointSocket, ProtocolEndpoint } from "../../plugin/provider.ts";
import type { ProviderSession } from "../../plugin/socket.ts";
import type { HostCall } from "../exchange/call.ts";
import type { SocketLane } from "../exchange/socket-lane.ts";
import type { EndpointTransport } from "../exchange/mounted.ts";
import { timeoutsFor } from "../targets/timeouts.ts";
import type { OutgoingRequest } from "./outgoing-request.ts";
import type { ConnectionPool, ConnectionUse, PooledConnection } from "./connection-pool.ts";
import { ProviderConnection } from "./provider-connection.ts";
import { HandshakeRejection, openRequestSocket } from "./provider-socket.ts";
import { SocketResponse } from "./socket-response.ts";

/** A request and where it is sent. */
interface SocketCall {
  readonly call: HostCall;
  readonly transport: EndpointTransport;
  readonly out: OutgoingRequest;
  readonly socket: EndpointSocket;
  readonly lane: SocketLane;
  readonly use: ConnectionUse;
  createSession(): ProviderSession;
}

/**
 * Sends the request. Resolves when the provider has accepted or rejected it. Resolves to undefined
 * if it must be sent over HTTP. Rejects with a `HandshakeRejection` if the provider does not accept
 * the credential, or no request at this time.
 */
export async function sendOverSocket(
  call: HostCall,
  transport: EndpointTransport,
  out: OutgoingRequest,
): Promise<SocketResponse | undefined> {
  const of = socketCallOf(call, transport, out);
  const response = of && ((await sendOnPooled(of)) ?? (await sendOnNew(of)));
  if (response && !response.needsNewConnection) return response;
  call.usesSocket = false;
  return undefined;
}

/**
 * Sends the request over an idle connection. Undefined if there is none, or if the request must be
 * sent over a new connection.
 */
async function sendOnPooled(of: SocketCall): Promise<SocketResponse | undefined> {
  const { call, transport, out } = of;
  // In translated mode a hook may have changed the response that the client continues.
  const { continues } =
    call.mode === "passthrough" ? call.exchange.state.body.received! : { continues: undefined };
  const wanted = { ...of.use, lane: of.lane, continues: continues?.id };
  const { credential } = call.candidate.mounted;
  const pooled = call.usesNewConnection
    ? undefined
    : transport.connections.find(credential, wanted);
  if (!pooled) return undefined;
  requireActive(call);
  const { session } = pooled;
  const message = out.copy();
  const isHeld = continues !== undefined && session.continuable === continues?.id;
  if (!session.prepareMessage(message, isHeld ? continues : undefined)) return undefined;
  const response = await sendMessage(of, pooled, message);
  return response.needsNewConnection ? undefined : response;
}

/** Returns where the request is sent. Undefined for a request that is sent over HTTP. */
function socketCallOf(
  call: HostCall,
  transport: EndpointTransport,
  out: OutgoingRequest,
): SocketCall | undefined {
  const { exchange: x, action } = call;
  const { lane } = x.state.connection;
  const socket = requestSocketOf(transport.definition, action, x.privacy);
  if (!lane || !socket || !call.stream) return undefined;
  const headers = handshakeHeaders(out.headers, socket.headers);
  const path = typeof socket.path === "string" ? socket.path : socket.path(call);
  const use = {
    key: x.identity?.id ?? "",
    handshake: JSON.stringify([path, withoutTrace(headers)]),
  };
  const { client } = transport.definition.protocol;
  const createSession = () => client!.createSession!();
  return { call, transport, out, socket, lane, use, createSession };
}

/** Returns the WebSocket of a provider over which requests of a client's WebSocket are sent. */
export function requestSocketOf(
  { sockets, protocol }: ProtocolEndpoint,
  action: string,
  privacy: Privacy,
): EndpointSocket | undefined {
  // Under zero data retention nothing may stay on a connection after its response.
  if (!protocol.client?.createSession || privacy !== "off") return undefined;
  return sockets && Object.hasOwn(sockets, action) ? (sockets[action] ?? undefined) : undefined;
}

/** Headers that describe a body. A handshake has no body. */
const BODY_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "content-length",
  "content-type",
]);
/** Headers that are different for each request of a connection. */
const TRACE_HEADERS: ReadonlySet<string> = new Set(["traceparent", "tracestate"]);

function handshakeHeaders(of: HeadersOut, own: HeadersOut | undefined): HeadersOut {
  const all = Object.entries({ ...of, ...own }).filter(([name]) => !BODY_HEADERS.has(name));
  return Object.fromEntries(all.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

const withoutTrace = (headers: HeadersOut) =>
  Object.entries(headers).filter(([name]) => !TRACE_HEADERS.has(name));

/**
 * Sends the complete request over a new connection. Undefined if the request cannot be sent over a
 * WebSocket, or if none could be opened.
 */
async function sendOnNew(of: SocketCall): Promise<SocketResponse | undefined> {
  const { call, transport, out, socket, lane, use } = of;
  const session = of.createSession();
  const message = out.copy();
  if (!session.prepareMessage(message, undefined)) return undefined;
  const { credential } = call.candidate.mounted;
  const pool = transport.connections;
  let made: PooledConnection | undefined;
  try {
    made = await pool.open(credential, async (now) => {
      const headers = handshakeHeaders(out.headers, socket.headers);
      const ws = await openRequestSocket(call, socket, headers, MESSAGE_BOUNDS);
      const onClosed = removeFrom(pool, credential);
      return new ProviderConnection({ ws, session, use, lane, now, onFree: pool.free, onClosed });
    });
  } catch (problem) {
    if (!isUnsupported(problem)) throw problem;
    if (!isOfRequest(problem)) pool.suspend(credential);
    const { exchange: x, provider } = call;
    x.state.gen.log.debug(
      { request: x.id, provider, err: problem },
      "provider did not accept WebSocket, using HTTP",
    );
    return undefined;
  }
  // The generation may have ended while the handshake ran.
  if (!made?.isIdle) return undefined;
  requireActive(call);
  return sendMessage(of, made, message);
}

/** Here, so that the connection keeps nothing of the call that opened it. */
const removeFrom =
  (pool: ConnectionPool, credential: Parameters<ConnectionPool["remove"]>[0]) =>
  (one: PooledConnection): void =>
    pool.remove(credential, one);

const MESSAGE_BOUNDS = {
  maxPayload: BOUNDS.imageEvent.max,
  maxFragments: BOUNDS.socketFragments.max,
};

/** Statuses of a handshake that concern the credential or the load, so HTTP would get them too. */
const SHARED_STATUSES: ReadonlySet<number> = new Set([401, 402, 408, 429, 503, 529]);

/**
 * Whether the provider, or something on the way to it, may have no WebSocket. Servers without one
 * answer with various statuses: common ASGI servers with 403, and proxies with 501 or 502.
 */
function isUnsupported(problem: unknown): boolean {
  if (problem instanceof HandshakeRejection) return !SHARED_STATUSES.has(problem.status);
  return getFault(problem)?.code === "upstream_unreachable";
}

/**
 * Whether the headers or the path of this request may be the reason. Other requests may still be
 * sent over WebSockets.
 */
const isOfRequest = (problem: unknown): boolean =>
  problem instanceof HandshakeRejection &&
  problem.status >= 400 &&
  problem.status < 500 &&
  !MISSING_STATUSES.has(problem.status);

/** Statuses with which servers without a WebSocket answer a handshake. */
const MISSING_STATUSES: ReadonlySet<number> = new Set([403, 404, 405, 426]);

/** Throws if the call was canceled. A session must not prepare a message that is never sent. */
function requireActive({ exchange, cancelReason }: HostCall): void {
  if (cancelReason) throw cancelReason;
  if (exchange.state.connection.isDisconnected) fail("canceled", "The client disconnected.");
}

/** Sends a message that the session of the connection has prepared. */
async function sendMessage(
  { call, lane }: SocketCall,
  connection: PooledConnection,
  message: OutgoingRequest,
): Promise<SocketResponse> {
  const x = call.exchange;
  const response = new SocketResponse(call, x.state.gen.timerWheel, timeoutsFor(call));
  call.onCancel((reason) => response.abort(reason));
  x.state.connection.disconnectListeners.push(() => {
    if (response.status === 0) response.abort(createFault("canceled", "The client disconnected."));
  });
  call.usesSocket = true;
  connection.lane = lane;
  connection.send(message.toChunks()!.toBuffer().toString(), response);
  await response.begun;
  return response;
}
