// Opens the guarded port. Every request and socket must pass its checks before it is passed to a
// frontend. May import node:http, lib, and its neighbors. It is independent of models.
import type { IncomingMessage, RequestListener, Server } from "node:http";
import { isIP, Server as NetServer, type AddressInfo, type Socket } from "node:net";
import { BOUNDS } from "../../lib/bounds.ts";
import { nextRequestId } from "../../lib/request-id.ts";
import { stripQuerySecrets } from "../../lib/query-secrets.ts";
import { answerPreflight, setCorsHeaders } from "./cors.ts";
import { type ConnectionLimits, drainAcceptQueue } from "./connection-counter.ts";
import { checkHandshake, UPGRADE_REJECTED } from "./handshake-check.ts";
import { createRequestGuard, type RequestGuard, type Rejection } from "./request-guard.ts";
import { sendRejection } from "./send-rejection.ts";
import { openPort, type PortAddress } from "./open-port.ts";
import type { SocketLimits } from "./socket-state.ts";
import { SocketGuard } from "./socket-guard.ts";

/** One address, and the rules for its requests. */
export interface ListenTarget extends PortAddress {
  /** Additional accepted `Host` names. */
  readonly hosts?: readonly string[];
  /** Origins from which browsers may send requests. */
  readonly origins?: readonly string[];
  /** Whether the stricter admin rules for `Host` and `Origin` apply. See `request-guard.ts`. */
  readonly isAdmin?: boolean;
}

export interface ListenOptions extends ListenTarget {
  /** Additional addresses. All addresses share the limits. */
  readonly additionalTargets?: readonly ListenTarget[];
  readonly handler: RequestListener;
  /**
   * Handler for `Expect: 100-continue`. Default: `handler`. The code that reads the body must call
   * `res.writeContinue()` before it reads.
   */
  readonly checkContinue?: RequestListener;
  /**
   * Takes over the socket of a WebSocket handshake that passed the checks of every request. Returns
   * false if the path has no WebSocket. Default: every upgrade is rejected.
   */
  readonly upgrade?: UpgradeListener;
  readonly limits?: Partial<ListenLimits>;
  /**
   * Called for every request and connection that was rejected before the handler received it
   * completely.
   */
  readonly onRejected?: (refusal: Rejection, who: RejectedClient) => void;
}

/**
 * The client of a rejected request. `id`: the `x-request-id` of the rejection. `method`: set if the
 * request head was complete.
 */
export interface RejectedClient {
  readonly id: string;
  readonly address: string | undefined;
  readonly method: string | undefined;
}

export type UpgradeListener = (req: IncomingMessage, socket: Socket, head: Buffer) => boolean;

export interface ListenLimits extends SocketLimits {
  readonly headers: number;
  /**
   * Keep-alive timeout, in milliseconds. It must be longer than the timeout of a load balancer in
   * front, because the load balancer could otherwise send a request to a closed socket.
   */
  readonly keepAliveMs: number;
}

export const DEFAULT_LIMITS: ListenLimits = {
  headTimeoutMs: 10_000,
  requestTimeoutMs: 120_000,
  minRateWindowMs: 10_000,
  stalledWindowMs: 60_000,
  connections: BOUNDS.connections.max,
  connectionsPerAddress: BOUNDS.connectionsPerAddress.max,
  inFlightPerSocket: BOUNDS.inFlightPerSocket.max,
  lingerMs: 1_000,
  lingerBytes: 65_536,
  // This is long enough for a client's first bytes to arrive, even over a network.
  closeGraceMs: 1_000,
  headers: BOUNDS.headers.max,
  keepAliveMs: 65_000,
  requestsPerSocket: BOUNDS.requestsPerSocket.max,
};

export interface ListenerHandle {
  /** URL of the first address. `port` and `server` also belong to the first address. */
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  /** URLs of all addresses, in their order. */
  readonly urls: readonly string[];
  readonly servers: readonly Server[];
  inFlight(): number;
  /** Changes the limits for new connections and for clients that do not read. */
  setLimits(limits: ConnectionLimits & Partial<Pick<SocketLimits, "stalledWindowMs">>): void;
  /**
   * Marks every response as the last response on its connection, because the port will close soon.
   * All requests are still served.
   */
  announceClose(): void;
  /**
   * Stops accepting connections and waits for open requests. Returns the number of requests that
   * were aborted after `graceMs`.
   */
  close(graceMs: number): Promise<number>;
  /**
   * Like `close`, for a port that another process also serves. Keep-alive connections are closed
   * after their next response.
   */
  closeForHandoff(graceMs: number): Promise<number>;
  /** Closes every connection immediately. */
  destroy(): void;
}

export async function listen(options: ListenOptions): Promise<ListenerHandle> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const onRejected = options.onRejected ?? (() => {});
  const sockets = new SocketGuard(limits, (refusal, address, id) =>
    onRejected(refusal, { id, address, method: undefined }),
  );
  const notRequest = (socket: Socket, refusal: Rejection) => {
    const id = nextRequestId();
    if (sockets.reject(socket, refusal, id))
      onRejected(refusal, { id, address: socket.remoteAddress, method: undefined });
  };
  const guarded =
    (door: RequestGuard) =>
    (handler: RequestListener): RequestListener =>
    (req, res) => {
      stripQuerySecrets(req);
      const entered = sockets.enter(req, res);
      if (entered === false) return;
      const refusal = entered === "full" ? TOO_MANY_IN_FLIGHT : door.check(req);
      if (refusal) {
        sockets.closeAfterResponse(req.socket);
        const id = nextRequestId();
        onRejected(refusal, { id, address: req.socket.remoteAddress, method: req.method });
        sendRejection(res, refusal, id);
      } else if (!answerPreflight(req, res)) {
        setCorsHeaders(req, res);
        handler(req, res);
      }
    };

  const upgraded =
    (door: RequestGuard): ((...args: Parameters<UpgradeListener>) => void) =>
    (req, socket, head) => {
      stripQuerySecrets(req);
      const refusal = door.check(req) ?? (options.upgrade ? checkHandshake(req) : UPGRADE_REJECTED);
      if (refusal) return notRequest(socket, refusal);
      if (!sockets.enterUpgrade(socket)) return;
      if (!options.upgrade!(req, socket, head)) notRequest(socket, UPGRADE_REJECTED);
    };

  let acceptedCount = 0;
  /** Opens one of the addresses. */
  async function opened(place: ListenTarget): Promise<Server> {
    const door = createRequestGuard({ ...place, maxHeaders: limits.headers });
    const through = guarded(door);
    const handler = through(options.handler);
    const server = await openPort(place, handler);
    const connected = place.tls ? "secureConnection" : "connection";
    server.on(connected, (socket: Socket) => void sockets.track(socket));
    server.on("connection", () => void acceptedCount++);
    if (place.tls) limitConnections(server, limits.connections);
    server.on("checkContinue", through(options.checkContinue ?? options.handler));
    // Sent to the request guard, which accepts only `100-continue`.
    server.on("checkExpectation", handler);
    server.on("upgrade", upgraded(door));
    attachServerEvents(server, notRequest);
    applyLimits(server, limits);
    return server;
  }

  const places = [options, ...(options.additionalTargets ?? [])];
  const servers = await openAll(places.map(opened));
  const urls = servers.map((server, i) => listenerUrlOf(server, places[i]!));
  const bound = servers[0]!.address() as AddressInfo | string;
  return {
    url: urls[0]!,
    urls,
    port: typeof bound === "string" ? 0 : bound.port,
    server: servers[0]!,
    servers,
    inFlight: () => sockets.inFlight,
    setLimits(more) {
      sockets.setLimits(more);
      for (const [i, server] of servers.entries())
        if (places[i]!.tls) limitConnections(server, more.connections);
    },
    announceClose: () => sockets.announceClose(),
    destroy: () => sockets.destroyAll(),
    async close(graceMs) {
      sockets.announceClose();
      await drainAcceptQueue(() => acceptedCount, limits.closeGraceMs);
      const closed = servers.map(closeServer);
      sockets.drain();
      return waitForRequests(graceMs, sockets, closed);
    },
    closeForHandoff(graceMs) {
      const closed = servers.map(closeServer);
      sockets.announceClose();
      return waitForRequests(graceMs, sockets, closed);
    },
  };
}

/**
 * Stops accepting connections. Node's own `close()` for HTTP and the `close()` of listhen also end
 * connections that they consider idle. A client may have sent a request on such a connection, or
 * may be waiting for `100 Continue`.
 */
const closeServer = (server: Server): Promise<void> =>
  new Promise((resolve) => void NetServer.prototype.close.call(server, () => resolve()));

/** Waits for open requests, at most `graceMs`. Returns the number of aborted requests. */
async function waitForRequests(
  graceMs: number,
  sockets: SocketGuard,
  closed: readonly Promise<void>[],
): Promise<number> {
  let cut = 0;
  const deadline = setTimeout(() => {
    cut = sockets.inFlight;
    sockets.destroyAll();
  }, graceMs);
  await Promise.all(closed);
  clearTimeout(deadline);
  sockets.stop();
  return cut;
}

/** Opens all servers. If one server fails to open, closes the others and throws. */
async function openAll(opening: readonly Promise<Server>[]): Promise<readonly Server[]> {
  const ends = await Promise.allSettled(opening);
  const failed = ends.find((end) => end.status === "rejected");
  if (!failed) return ends.map((end) => (end as PromiseFulfilledResult<Server>).value);
  for (const end of ends) if (end.status === "fulfilled") end.value.close();
  throw failed.reason;
}

/**
 * Maximum pending TLS handshakes beyond the connection limit. A connection cannot receive an error
 * response before its handshake is complete.
 */
const MAX_PENDING_HANDSHAKES = 256;

const limitConnections = (server: Server, connections: number): void =>
  void (server.maxConnections = connections + MAX_PENDING_HANDSHAKES);

function attachServerEvents(
  server: Server,
  notRequest: (socket: Socket, refusal: Rejection) => void,
): void {
  server.on("connect", (req) => notRequest(req.socket, CONNECT_REJECTED));
  server.on("clientError", (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    const { code = "", rawPacket } = error;
    // All other errors mean that the client disconnected.
    if (code in PARSER_REJECTIONS || (code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE"))
      notRequest(
        socket as Socket,
        rawPacket?.[0] === TLS_HANDSHAKE
          ? TLS_ON_PLAIN_HTTP
          : (PARSER_REJECTIONS[code] ?? BAD_REQUEST),
      );
    else socket.destroy();
  });
}

/**
 * Applies the limits that can change after the server has been created. `maxHeaderSize` cannot be
 * changed. It stays at Node's default of 16 KiB.
 */
function applyLimits(server: Server, limits: ListenLimits): void {
  server.headersTimeout = limits.headTimeoutMs;
  // The socket guard limits the time of a body. Node would also end streamed bodies.
  server.requestTimeout = 0;
  server.keepAliveTimeout = limits.keepAliveMs;
  server.timeout = 0;
  // Node would reject only a request without `Host` and still process the next request on the
  // connection. The request guard rejects both.
  Object.assign(server, { requireHostHeader: false });
}

function listenerUrlOf(server: Server, { host, tls, socket }: ListenTarget): string {
  const bound = server.address() as AddressInfo | string;
  return typeof bound === "string"
    ? `unix:${socket?.path ?? bound}`
    : `${tls ? "https" : "http"}://${toReachableHost(host)}:${bound.port}`;
}

const TOO_MANY_IN_FLIGHT: Rejection = {
  status: 429,
  code: BOUNDS.inFlightPerSocket.error[1],
  message: BOUNDS.inFlightPerSocket.message,
  retryAfterMs: 1_000,
};
const CONNECT_REJECTED: Rejection = {
  status: 405,
  code: "method",
  message: "CONNECT is not allowed.",
};
/** First byte of a TLS handshake. */
const TLS_HANDSHAKE = 0x16;
const TLS_ON_PLAIN_HTTP: Rejection = {
  status: 400,
  code: "tls",
  message: "Only HTTP is supported here, not HTTPS.",
};
const BAD_REQUEST: Rejection = { status: 400, code: "http_malformed", message: "Malformed HTTP." };
const PARSER_REJECTIONS: Readonly<Record<string, Rejection>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: "head_too_large",
    message: "The request headers are too large.",
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    code: "chunk_extensions",
    message: "Chunk extensions are too large.",
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    code: "head_timeout",
    message: "The request was not received in time.",
  },
};

/** Returns an address that a client on this machine can use. */
export function toReachableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return isIP(host) === 6 ? `[${host}]` : host;
}
