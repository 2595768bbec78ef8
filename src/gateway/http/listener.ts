// The one open port, guarded: what every request and every socket must keep to before a frontend looks at it.
// May import: node:http, listhen, lib, and its own neighbours. Knows nothing of models.
import type { RequestListener, Server } from "node:http";
import { isIP, Server as NetServer, type AddressInfo, type Socket } from "node:net";
import { BOUNDS } from "../../lib/bounds.ts";
import { nextId } from "../../lib/id.ts";
import { takeQuerySecrets } from "../../lib/query-secrets.ts";
import { answerPreflight, nameOrigin } from "./cors.ts";
import type { CrowdLimits } from "./connections.ts";
import { createDoor, type Door, type Refusal } from "./door.ts";
import { sendRefusal } from "./refusal.ts";
import { allTaken } from "./last-look.ts";
import type { SocketLimits } from "./socket-limits.ts";
import { Sockets } from "./sockets.ts";

/** One address, and what is to be kept to there. */
export interface ListenPlace {
  readonly host: string;
  /** 0: any free one. Any other is this one or an error. */
  readonly port: number;
  /** How it is opened, when it is no port of this process alone. */
  readonly open?: (at: ListenPlace, handler: RequestListener) => Promise<Server>;
  /** More Host names that count as ours. */
  readonly hosts?: readonly string[];
  /** Origins that browsers may call from. */
  readonly origins?: readonly string[];
  /** Stricter about names of hosts and about pages, as `door.ts` says. */
  readonly admin?: boolean;
  /** What `open` opens speaks https. */
  readonly secure?: boolean;
  /** The path of what `open` opens, when that is no address. */
  readonly socket?: string;
}

export interface ListenOptions extends ListenPlace {
  /** More addresses, under the same limits together. */
  readonly also?: readonly ListenPlace[];
  readonly handler: RequestListener;
  /** For `Expect: 100-continue`; the same one unless said otherwise. What reads the body calls `res.writeContinue()` first. */
  readonly checkContinue?: RequestListener;
  readonly limits?: Partial<ListenLimits>;
  /** Told of every request, and every connection, that was turned away before it was with the handler whole. */
  readonly refused?: (refusal: Refusal, who: RefusedClient) => void;
}

/** `id`: the refusal's `x-request-id`. `method`: where a whole head was read. */
export interface RefusedClient {
  readonly id: string;
  readonly address: string | undefined;
  readonly method: string | undefined;
}

export interface ListenLimits extends SocketLimits {
  readonly headers: number;
  /** Longer than a load balancer in front keeps its side open, or it sends into a closed socket. */
  readonly keepAliveMs: number;
}

export const LIMITS: ListenLimits = {
  headMs: 10_000,
  receiptMs: 120_000,
  slowMs: 10_000,
  stuckMs: 60_000,
  connections: BOUNDS.connections.most,
  connectionsPerAddress: BOUNDS.connectionsPerAddress.most,
  inFlightPerSocket: BOUNDS.inFlightPerSocket.most,
  lingerMs: 1_000,
  lingerBytes: 65_536,
  // What a client says at once is here by then, over a network too.
  lastMs: 1_000,
  headers: BOUNDS.headers.most,
  keepAliveMs: 65_000,
  requestsPerSocket: BOUNDS.requestsPerSocket.most,
};

export interface Listening {
  /** Of the first address, as are `port` and `server`. */
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  /** Of all addresses, in their order. */
  readonly urls: readonly string[];
  readonly servers: readonly Server[];
  inflight(): number;
  /** Of connections, and of clients that do not read; from now on. */
  limit(limits: CrowdLimits & Partial<Pick<SocketLimits, "stuckMs">>): void;
  /** All are served, and every answer is the last one on its connection: the port closes soon. */
  announce(): void;
  /** Accepts no new client and waits for requests in flight; how many were cut when the time was over. */
  close(graceMs: number): Promise<number>;
  /** The same, when another process serves the same ports: a connection that a client keeps is closed by its next answer. */
  leave(graceMs: number): Promise<number>;
  /** Cuts every client off. */
  kill(): void;
}

export async function listen(options: ListenOptions): Promise<Listening> {
  const limits = { ...LIMITS, ...options.limits };
  const told = options.refused ?? (() => {});
  const sockets = new Sockets(limits, (refusal, address, id) =>
    told(refusal, { id, address, method: undefined }),
  );
  const notRequest = (socket: Socket, refusal: Refusal) => {
    const id = nextId();
    if (sockets.refuse(socket, refusal, id))
      told(refusal, { id, address: socket.remoteAddress, method: undefined });
  };
  const guarded =
    (door: Door) =>
    (handler: RequestListener): RequestListener =>
    (req, res) => {
      takeQuerySecrets(req);
      const entered = sockets.enter(req, res);
      if (entered === false) return;
      const refusal = entered === "full" ? FULL : door.refuse(req);
      if (refusal) {
        sockets.last(req.socket);
        const id = nextId();
        told(refusal, { id, address: req.socket.remoteAddress, method: req.method });
        sendRefusal(res, refusal, id);
      } else if (!answerPreflight(req, res)) {
        nameOrigin(req, res);
        handler(req, res);
      }
    };

  let taken = 0;
  /** One address of those that there are. */
  async function opened(place: ListenPlace): Promise<Server> {
    const through = guarded(createDoor({ ...place, headers: limits.headers }));
    const handler = through(options.handler);
    const open = place.open ?? (await import("./bind.ts")).bind;
    const server = await open(place, handler);
    const connected = place.secure ? "secureConnection" : "connection";
    server.on(connected, (socket: Socket) => void sockets.opened(socket));
    server.on("connection", () => void taken++);
    if (place.secure) bounded(server, limits.connections);
    server.on("checkContinue", through(options.checkContinue ?? options.handler));
    // Reaches the door, which knows one Expect only.
    server.on("checkExpectation", handler);
    listenFor(server, notRequest);
    keepTo(server, limits);
    return server;
  }

  const places = [options, ...(options.also ?? [])];
  const servers = await together(places.map(opened));
  const urls = servers.map((server, i) => urlOf(server, places[i]!));
  const bound = servers[0]!.address() as AddressInfo | string;
  return {
    url: urls[0]!,
    urls,
    port: typeof bound === "string" ? 0 : bound.port,
    server: servers[0]!,
    servers,
    inflight: () => sockets.inFlight,
    limit(more) {
      sockets.limit(more);
      for (const [i, server] of servers.entries())
        if (places[i]!.secure) bounded(server, more.connections);
    },
    announce: () => sockets.announce(),
    kill: () => sockets.kill(),
    async close(graceMs) {
      sockets.announce();
      await allTaken(() => taken, limits.lastMs);
      const closed = servers.map(closing);
      sockets.drain();
      return within(graceMs, sockets, closed);
    },
    leave(graceMs) {
      const closed = servers.map(closing);
      sockets.announce();
      return within(graceMs, sockets, closed);
    },
  };
}

/**
 * Takes no new connection. Node's own close() for HTTP, and listhen's, end those that they take for idle: on one a client may have asked, and
 * one that waits for 100 Continue is not.
 */
const closing = (server: Server): Promise<void> =>
  new Promise((resolve) => void NetServer.prototype.close.call(server, () => resolve()));

/** How many requests were cut off when the time was over. */
async function within(
  graceMs: number,
  sockets: Sockets,
  closed: readonly Promise<void>[],
): Promise<number> {
  let cut = 0;
  const deadline = setTimeout(() => {
    cut = sockets.inFlight;
    sockets.kill();
  }, graceMs);
  await Promise.all(closed);
  clearTimeout(deadline);
  sockets.end();
  return cut;
}

/** All of them, or none. */
async function together(opening: readonly Promise<Server>[]): Promise<readonly Server[]> {
  const ends = await Promise.allSettled(opening);
  const failed = ends.find((end) => end.status === "rejected");
  if (!failed) return ends.map((end) => (end as PromiseFulfilledResult<Server>).value);
  for (const end of ends) if (end.status === "fulfilled") end.value.close();
  throw failed.reason;
}

/** Before its handshake is over a connection is none that could be refused in words: so many more than that are open at most. */
const HANDSHAKES = 256;

const bounded = (server: Server, connections: number): void =>
  void (server.maxConnections = connections + HANDSHAKES);

function listenFor(server: Server, notRequest: (socket: Socket, refusal: Refusal) => void): void {
  server.on("upgrade", (req) => notRequest(req.socket, UPGRADE));
  server.on("connect", (req) => notRequest(req.socket, CONNECT));
  server.on("clientError", (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    const { code = "", rawPacket } = error;
    // Other errors are clients that left.
    if (code in MALFORMED || (code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE"))
      notRequest(
        socket as Socket,
        rawPacket?.[0] === TLS_HANDSHAKE ? TLS : (MALFORMED[code] ?? BAD_REQUEST),
      );
    else socket.destroy();
  });
}

/** What can still be said after the server was made. `maxHeaderSize` cannot: it stays at Node's own 16 KiB. */
function keepTo(server: Server, limits: ListenLimits): void {
  server.headersTimeout = limits.headMs;
  server.requestTimeout = limits.receiptMs;
  server.keepAliveTimeout = limits.keepAliveMs;
  server.timeout = 0;
  // Node would refuse such a request alone, and still hand on the one behind it. The door refuses both.
  Object.assign(server, { requireHostHeader: false });
}

function urlOf(server: Server, { host, secure, socket }: ListenPlace): string {
  const bound = server.address() as AddressInfo | string;
  return typeof bound === "string"
    ? `unix:${socket ?? bound}`
    : `${secure ? "https" : "http"}://${reachable(host)}:${bound.port}`;
}

const FULL: Refusal = {
  status: 429,
  code: BOUNDS.inFlightPerSocket.error[1],
  message: BOUNDS.inFlightPerSocket.beyond,
  retryAfterMs: 1_000,
};
const UPGRADE: Refusal = {
  status: 426,
  code: "upgrade",
  message: "Only HTTP/1.1 is spoken here.",
  headers: { upgrade: "HTTP/1.1" },
};
const CONNECT: Refusal = { status: 405, code: "method", message: "CONNECT is not answered here." };
/** The first byte of a client that begins with TLS. */
const TLS_HANDSHAKE = 0x16;
const TLS: Refusal = { status: 400, code: "tls", message: "Only http is spoken here, not https." };
const BAD_REQUEST: Refusal = { status: 400, code: "http_malformed", message: "Malformed HTTP." };
const MALFORMED: Readonly<Record<string, Refusal>> = {
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
export function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return isIP(host) === 6 ? `[${host}]` : host;
}
