// The one open port, guarded: what every request and every socket must keep to before a frontend looks at it.
// May import: node:http, listhen, lib, and its own neighbours. Knows nothing of models.
import type { RequestListener, Server } from "node:http";
import { isIP, Server as NetServer, type AddressInfo, type Socket } from "node:net";
import { BOUNDS } from "../../lib/bounds.ts";
import { nextRequestId } from "../../lib/request-id.ts";
import { stripQuerySecrets } from "../../lib/query-secrets.ts";
import { answerPreflight, setCorsHeaders } from "./cors.ts";
import type { ConnectionLimits } from "./connection-counter.ts";
import { createRequestGuard, type RequestGuard, type Rejection } from "./request-guard.ts";
import { sendRejection } from "./send-rejection.ts";
import { drainAcceptQueue } from "./close-grace.ts";
import type { SocketLimits } from "./socket-limits.ts";
import { SocketGuard } from "./socket-guard.ts";

/** One address, and what is to be kept to there. */
export interface ListenTarget {
  readonly host: string;
  /** 0: any free one. Any other is this one or an error. */
  readonly port: number;
  /** How it is opened, when it is no port of this process alone. */
  readonly open?: (at: ListenTarget, handler: RequestListener) => Promise<Server>;
  /** More Host names that count as ours. */
  readonly hosts?: readonly string[];
  /** Origins that browsers may call from. */
  readonly origins?: readonly string[];
  /** Stricter about names of hosts and about pages, as `door.ts` says. */
  readonly isAdmin?: boolean;
  /** What `open` opens speaks https. */
  readonly isTls?: boolean;
  /** The path of what `open` opens, when that is no address. */
  readonly socket?: string;
}

export interface ListenOptions extends ListenTarget {
  /** More addresses, under the same limits together. */
  readonly additionalTargets?: readonly ListenTarget[];
  readonly handler: RequestListener;
  /** For `Expect: 100-continue`; the same one unless said otherwise. What reads the body calls `res.writeContinue()` first. */
  readonly checkContinue?: RequestListener;
  readonly limits?: Partial<ListenLimits>;
  /** Told of every request, and every connection, that was turned away before it was with the handler whole. */
  readonly onRejected?: (refusal: Rejection, who: RejectedClient) => void;
}

/** `id`: the refusal's `x-request-id`. `method`: where a whole head was read. */
export interface RejectedClient {
  readonly id: string;
  readonly address: string | undefined;
  readonly method: string | undefined;
}

export interface ListenLimits extends SocketLimits {
  readonly headers: number;
  /** Longer than a load balancer in front keeps its side open, or it sends into a closed socket. */
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
  // What a client says at once is here by then, over a network too.
  closeGraceMs: 1_000,
  headers: BOUNDS.headers.max,
  keepAliveMs: 65_000,
  requestsPerSocket: BOUNDS.requestsPerSocket.max,
};

export interface ListenerHandle {
  /** Of the first address, as are `port` and `server`. */
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  /** Of all addresses, in their order. */
  readonly urls: readonly string[];
  readonly servers: readonly Server[];
  inFlight(): number;
  /** Of connections, and of clients that do not read; from now on. */
  setLimits(limits: ConnectionLimits & Partial<Pick<SocketLimits, "stalledWindowMs">>): void;
  /** All are served, and every answer is the last one on its connection: the port closes soon. */
  announceClose(): void;
  /** Accepts no new client and waits for requests in flight; how many were cut when the time was over. */
  close(graceMs: number): Promise<number>;
  /** The same, when another process serves the same ports: a connection that a client keeps is closed by its next answer. */
  closeForHandoff(graceMs: number): Promise<number>;
  /** Cuts every client off. */
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

  let acceptedCount = 0;
  /** One address of those that there are. */
  async function opened(place: ListenTarget): Promise<Server> {
    const through = guarded(createRequestGuard({ ...place, maxHeaders: limits.headers }));
    const handler = through(options.handler);
    const open = place.open ?? (await import("./listhen-bind.ts")).bindWithListhen;
    const server = await open(place, handler);
    const connected = place.isTls ? "secureConnection" : "connection";
    server.on(connected, (socket: Socket) => void sockets.track(socket));
    server.on("connection", () => void acceptedCount++);
    if (place.isTls) limitConnections(server, limits.connections);
    server.on("checkContinue", through(options.checkContinue ?? options.handler));
    // Reaches the door, which knows one Expect only.
    server.on("checkExpectation", handler);
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
        if (places[i]!.isTls) limitConnections(server, more.connections);
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
 * Takes no new connection. Node's own close() for HTTP, and listhen's, end those that they take for idle: on one a client may have asked, and
 * one that waits for 100 Continue is not.
 */
const closeServer = (server: Server): Promise<void> =>
  new Promise((resolve) => void NetServer.prototype.close.call(server, () => resolve()));

/** How many requests were cut off when the time was over. */
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

/** All of them, or none. */
async function openAll(opening: readonly Promise<Server>[]): Promise<readonly Server[]> {
  const ends = await Promise.allSettled(opening);
  const failed = ends.find((end) => end.status === "rejected");
  if (!failed) return ends.map((end) => (end as PromiseFulfilledResult<Server>).value);
  for (const end of ends) if (end.status === "fulfilled") end.value.close();
  throw failed.reason;
}

/** Before its handshake is over a connection is none that could be refused in words: so many more than that are open at most. */
const MAX_PENDING_HANDSHAKES = 256;

const limitConnections = (server: Server, connections: number): void =>
  void (server.maxConnections = connections + MAX_PENDING_HANDSHAKES);

function attachServerEvents(
  server: Server,
  notRequest: (socket: Socket, refusal: Rejection) => void,
): void {
  server.on("upgrade", (req) => notRequest(req.socket, UPGRADE_REJECTED));
  server.on("connect", (req) => notRequest(req.socket, CONNECT_REJECTED));
  server.on("clientError", (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    const { code = "", rawPacket } = error;
    // Other errors are clients that left.
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

/** What can still be said after the server was made. `maxHeaderSize` cannot: it stays at Node's own 16 KiB. */
function applyLimits(server: Server, limits: ListenLimits): void {
  server.headersTimeout = limits.headTimeoutMs;
  server.requestTimeout = limits.requestTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveMs;
  server.timeout = 0;
  // Node would refuse such a request alone, and still hand on the one behind it. The door refuses both.
  Object.assign(server, { requireHostHeader: false });
}

function listenerUrlOf(server: Server, { host, isTls, socket }: ListenTarget): string {
  const bound = server.address() as AddressInfo | string;
  return typeof bound === "string"
    ? `unix:${socket ?? bound}`
    : `${isTls ? "https" : "http"}://${toReachableHost(host)}:${bound.port}`;
}

const TOO_MANY_IN_FLIGHT: Rejection = {
  status: 429,
  code: BOUNDS.inFlightPerSocket.error[1],
  message: BOUNDS.inFlightPerSocket.message,
  retryAfterMs: 1_000,
};
const UPGRADE_REJECTED: Rejection = {
  status: 426,
  code: "upgrade",
  message: "Only HTTP/1.1 is spoken here.",
  headers: { upgrade: "HTTP/1.1" },
};
const CONNECT_REJECTED: Rejection = {
  status: 405,
  code: "method",
  message: "CONNECT is not answered here.",
};
/** The first byte of a client that begins with TLS. */
const TLS_HANDSHAKE = 0x16;
const TLS_ON_PLAIN_HTTP: Rejection = {
  status: 400,
  code: "tls",
  message: "Only http is spoken here, not https.",
};
const BAD_REQUEST: Rejection = { status: 400, code: "http_malformed", message: "Malformed HTTP." };
const PARSER_REJECTIONS: Readonly<Record<string, Rejection>> = {
  HPE_HEADER_OVERFLOW: { status: 431, code: "head_too_large", message: "The head is too large." },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    code: "chunk_extensions",
    message: "Chunk extensions are too large.",
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    code: "head_timeout",
    message: "The request did not arrive in time.",
  },
};

/** An address that a client on this machine can use. */
export function toReachableHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return isIP(host) === 6 ? `[${host}]` : host;
}
