// The one open port, guarded: what every request and every socket must keep to before a frontend looks at it.
// May import: node:http, listhen, lib, and its own neighbours. Knows nothing of models.
import type { RequestListener, Server } from "node:http";
import { isIP, type AddressInfo, type Socket } from "node:net";
import { BOUNDS } from "../../lib/bounds.ts";
import { nextId } from "../../lib/id.ts";
import { takeQuerySecrets } from "../../lib/query-secrets.ts";
import { answerPreflight, nameOrigin } from "./cors.ts";
import type { CrowdLimits } from "./connections.ts";
import { createDoor, type Refusal } from "./door.ts";
import type { share } from "./port.ts";
import { sendRefusal } from "./refusal.ts";
import { Sockets, type SocketLimits } from "./sockets.ts";

export interface ListenOptions {
  readonly host: string;
  /** 0: any free one. Any other is this one or an error. */
  readonly port: number;
  readonly handler: RequestListener;
  /** How the port is opened, when others open it too. */
  readonly open?: typeof share;
  /** For `Expect: 100-continue`; the same one unless said otherwise. What reads the body calls `res.writeContinue()` first. */
  readonly checkContinue?: RequestListener;
  /** More Host names that count as ours. */
  readonly hosts?: readonly string[];
  /** Origins that browsers may call from. */
  readonly origins?: readonly string[];
  /** Stricter about names of hosts and about pages, as `door.ts` says. */
  readonly admin?: boolean;
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
  headers: BOUNDS.headers.most,
  keepAliveMs: 65_000,
  requestsPerSocket: BOUNDS.requestsPerSocket.most,
};

export interface Listening {
  readonly url: string;
  readonly port: number;
  readonly server: Server;
  inflight(): number;
  /** Of connections, and of clients that do not read; from now on. */
  limit(limits: CrowdLimits & Partial<Pick<SocketLimits, "stuckMs">>): void;
  /** All are served, and every answer is the last one on its connection: the port closes soon. */
  announce(): void;
  /** Accepts no new client and waits for requests in flight; how many were cut when the time was over. */
  close(graceMs: number): Promise<number>;
  /** Cuts every client off. */
  kill(): void;
}

export async function listen(options: ListenOptions): Promise<Listening> {
  const limits = { ...LIMITS, ...options.limits };
  const told = options.refused ?? (() => {});
  const sockets = new Sockets(limits, (refusal, address, id) =>
    told(refusal, { id, address, method: undefined }),
  );
  const door = createDoor({ ...options, headers: limits.headers });

  const through =
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

  const handler = through(options.handler);
  const open = options.open ?? (await import("./bind.ts")).bind;
  const server = await open(options, handler);
  const notRequest = (socket: Socket, refusal: Refusal) => {
    const id = nextId();
    if (sockets.refuse(socket, refusal, id))
      told(refusal, { id, address: socket.remoteAddress, method: undefined });
  };
  server.on("connection", (socket) => sockets.opened(socket));
  server.on("checkContinue", through(options.checkContinue ?? options.handler));
  // Reaches the door, which knows one Expect only.
  server.on("checkExpectation", handler);
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

  // What can still be said after the server was made. `maxHeaderSize` cannot: it stays at Node's own 16 KiB.
  server.headersTimeout = limits.headMs;
  server.requestTimeout = limits.receiptMs;
  server.keepAliveTimeout = limits.keepAliveMs;
  server.timeout = 0;
  // Node would refuse such a request alone, and still hand on the one behind it. The door refuses both.
  Object.assign(server, { requireHostHeader: false });

  const bound = server.address() as AddressInfo | string;
  const port = typeof bound === "string" ? 0 : bound.port;
  return {
    url: typeof bound === "string" ? `unix:${bound}` : `http://${reachable(options.host)}:${port}`,
    port,
    server,
    inflight: () => sockets.inFlight,
    limit: (limits) => sockets.limit(limits),
    announce: () => sockets.announce(),
    kill: () => sockets.kill(),
    async close(graceMs) {
      // Not listhen's own close(): it takes a request that waits for 100 Continue for an idle socket.
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      sockets.drain();
      let cut = 0;
      const deadline = setTimeout(() => {
        cut = sockets.inFlight;
        sockets.kill();
      }, graceMs);
      await closed;
      clearTimeout(deadline);
      sockets.end();
      return cut;
    },
  };
}

const FULL: Refusal = {
  status: 429,
  code: BOUNDS.inFlightPerSocket.error[1],
  message: BOUNDS.inFlightPerSocket.beyond,
  headers: { "retry-after": "1" },
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
