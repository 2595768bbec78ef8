// Opens the WebSockets of clients. A handshake is admitted like a request, with the same hooks and
// the same errors. After that, its session handles the connection until it is closed.
import { ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { WebSocket, WebSocketServer } from "ws";
import { BOUNDS } from "../../lib/bounds.ts";
import { isPromise } from "../../lib/is-promise.ts";
import { nextRequestId } from "../../lib/request-id.ts";
import { fail, getFault, type Fault } from "../../model/error.ts";
import type { Route, RouteResponse, SocketRoute } from "../../plugin/frontend.ts";
import { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { MountedSocket } from "../../pipeline/exchange/mounted.ts";
import { VirtualResponse } from "../../pipeline/exchange/virtual-connection.ts";
import type { Generation } from "../../pipeline/generation.ts";
import { admit } from "../../pipeline/stages/admit.ts";
import { reject } from "../../pipeline/stages/reject.ts";
import { rejectSafely, settle } from "../../pipeline/stages/settle.ts";
import type { Services } from "../services.ts";
import type { SocketMessage } from "../../plugin/socket.ts";
import { openRelay, type OpenRelay } from "../../pipeline/sockets/open-relay.ts";
import type { MessageBounds } from "../../pipeline/upstream/provider-socket.ts";
import { startCall } from "../../pipeline/sockets/start-call.ts";
import { CallConnection } from "./call-connection.ts";
import { ClientSocket } from "./client-socket.ts";
import { createAcceptor } from "./socket-acceptor.ts";
import { OpenSockets, type OpenSocket } from "./open-sockets.ts";
import { RequestConnection, type CurrentRoute } from "./request-connection.ts";
import { RelayConnection } from "./relay-connection.ts";
import type { FindSocket, FoundSocket } from "./socket-routes.ts";
import { SpentBudgets } from "./spent-budgets.ts";

/** The generation in use, with its sockets. */
export interface SocketGeneration {
  readonly gen: Generation;
  readonly findSocket: FindSocket;
  readonly maxMessageBytes: number;
}

export class SocketServer {
  readonly open: OpenSockets;
  readonly #services: Pick<Services, "memoryBudget" | "usageQueries" | "log" | "calls">;
  readonly #current: () => SocketGeneration;
  readonly #spent: SpentBudgets;
  /** Servers by the maximum size of a message. The servers keep no connections. */
  readonly #acceptors = new Map<string, WebSocketServer>();

  constructor(
    services: Pick<Services, "memoryBudget" | "usageQueries" | "log" | "calls">,
    current: () => SocketGeneration,
    open: OpenSockets = new OpenSockets(),
  ) {
    this.#services = services;
    this.#current = current;
    this.open = open;
    this.#spent = new SpentBudgets(services.usageQueries, open, () => current().gen);
    if (services.calls)
      services.calls.start = (x, socket, body) => this.#startCall(x, socket, body);
  }

  /** Takes over the socket of a handshake. Returns false if the path has no WebSocket. */
  accept(req: IncomingMessage, raw: Socket, head: Buffer): boolean {
    const { gen, findSocket } = this.#current();
    const found = findSocket((req.url ?? "/").split("?", 1)[0]!);
    if (!found) return false;
    void this.#handshake(gen, found, req, raw, head);
    return true;
  }

  async #handshake(
    gen: Generation,
    found: FoundSocket,
    req: IncomingMessage,
    raw: Socket,
    head: Buffer,
  ): Promise<void> {
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(raw);
    res.on("finish", () => raw.destroySoon());
    const x = createHandshake(gen, found, req, res);
    const release = gen.retain(x);
    try {
      const admitting = admit(x);
      if (isPromise(admitting)) await admitting;
      if (this.open.isDraining)
        fail("overloaded", "The gateway is shutting down.", { code: "shutting_down" });
      const relay = opensEarly(found.socket.route) ? await this.#openRelay(x, found) : undefined;
      if (raw.destroyed || !raw.readable) return relay?.provider.terminate();
      res.detachSocket(raw);
      res.statusCode = 101;
      this.#upgrade(gen, found, { req, raw, head, x, relay });
    } catch (problem) {
      rejectSafely(x, problem, reject);
    } finally {
      x.state.admission.permit.onPipelineEnd();
      release();
    }
    const settling = settle(x);
    if (settling) await settling;
  }

  #upgrade(
    gen: Generation,
    { socket: mounted }: FoundSocket,
    { req, raw, head, x, relay }: Upgrade,
  ): void {
    const { route } = mounted;
    let isOpen = false;
    const maxBytes = "openSession" in route ? gen.maxBodyBytes : this.#current().maxMessageBytes;
    this.#acceptorOf(route, maxBytes).handleUpgrade(req, raw, head, (ws: WebSocket) => {
      const socket = new ClientSocket(ws, raw, this.#services.memoryBudget, x.identity!.id);
      try {
        this.#openConnection(mounted, req, socket, x, relay);
        isOpen = true;
      } catch (err) {
        gen.log.error({ socket: x.id, frontend: x.frontend, err }, "opening socket failed");
        socket.terminate();
      }
    });
    if (!isOpen) relay?.provider.terminate();
  }

  #acceptorOf({ subprotocols = [] }: SocketRoute, maxBytes: number): WebSocketServer {
    const key = `${maxBytes} ${subprotocols.join(",")}`;
    let acceptor = this.#acceptors.get(key);
    if (!acceptor) this.#acceptors.set(key, (acceptor = createAcceptor(maxBytes, subprotocols)));
    return acceptor;
  }

  #openConnection(
    mounted: MountedSocket,
    req: IncomingMessage,
    socket: ClientSocket,
    x: HostExchange,
    relay: OpenRelay | undefined,
  ): void {
    const { route } = mounted;
    if (!("openSession" in route)) return this.#openRelayConnection(mounted, socket, x, relay);
    const { memoryBudget } = this.#services;
    const connection: RequestConnection = new RequestConnection({
      socket,
      handshake: x,
      req,
      session: route.openSession(x),
      headers: headersOfRequests(req),
      memory: {
        tryReserve: (bytes, held) => memoryBudget.tryReserve(socket.key, bytes, held),
        release: (held, left) => memoryBudget.release(socket.key, held, left),
      },
      current: () => this.#routeOf(mounted),
      checkKey: () => this.#checkKey(connection, mounted, x),
      onSettled: (settled) => this.#spent.onSettled(connection, settled),
      onClosed: (of) => this.open.remove(of),
    });
    this.#track(connection, x);
    connection.open();
  }

  #openRelay(
    x: HostExchange,
    { socket }: Pick<FoundSocket, "socket">,
    first?: SocketMessage,
  ): Promise<OpenRelay> {
    return openRelay(x, socket, first, this.#bounds);
  }

  #openRelayConnection(
    mounted: MountedSocket,
    socket: ClientSocket,
    x: HostExchange,
    relay: OpenRelay | undefined,
  ): void {
    const release = x.state.gen.retain(x);
    const connection: RelayConnection = new RelayConnection({
      socket,
      handshake: x,
      mounted,
      relay,
      open: (first) => this.#openRelay(x, { socket: mounted }, first),
      checkKey: () => this.#checkKey(connection, mounted, x),
      onSettled: (settled) => this.#spent.onSettled(connection, settled),
      onClosed: (of) => this.open.remove(of),
      onEnd: release,
    });
    this.#track(connection, x);
    connection.open();
  }

  /** Sets up a call, and meters it until it ends. */
  async #startCall(x: HostExchange, mounted: MountedSocket, body: Buffer): Promise<RouteResponse> {
    if (this.open.isDraining)
      fail("overloaded", "The gateway is shutting down.", { code: "shutting_down" });
    const call = await startCall(x, mounted, body, this.#bounds);
    const { isDisconnected } = x.state.connection;
    const release = x.state.gen.retain(x);
    const connection: CallConnection = new CallConnection({
      call,
      checkKey: () => this.#checkKey(connection, mounted, x),
      onSettled: (settled) => this.#spent.onSettled(connection, settled),
      onClosed: (of) => this.open.remove(of),
      onEnd: release,
    });
    this.#track(connection, x);
    connection.open();
    if (isDisconnected) connection.socket.close();
    return call.response;
  }

  get #bounds(): MessageBounds {
    return {
      maxPayload: this.#current().maxMessageBytes,
      maxFragments: BOUNDS.socketFragments.max,
    };
  }

  /** Returns the route of a connection in the generation that is current now. */
  #routeOf({ frontend, path, route }: MountedSocket): CurrentRoute {
    const { gen, findSocket } = this.#current();
    const found = findSocket(path)?.socket;
    const isSame =
      found?.frontend.name === frontend.name &&
      "openSession" in found.route === "openSession" in route;
    return { gen, mounted: isSame ? found : undefined };
  }

  #track(connection: OpenSocket, x: HostExchange): void {
    this.#spent.watch(connection, x);
    this.open.add(connection);
  }

  /** Admits the handshake again to check its key. */
  async #checkKey(
    connection: OpenSocket,
    of: MountedSocket,
    handshake: HostExchange,
  ): Promise<Fault | undefined> {
    const { gen, mounted } = this.#routeOf(of);
    if (!mounted) return { kind: "not_found", message: "The route was removed." };
    const res = new DiscardedResponse();
    const { req } = handshake.state.connection;
    const found = { socket: mounted, params: {} };
    const x = createHandshake(gen, found, req, res.asServerResponse, handshake);
    const release = gen.retain(x);
    try {
      await admit(x);
      // The key or its account may have other limits now.
      this.#spent.watch(connection, x);
      return undefined;
    } catch (problem) {
      const fault = getFault(problem);
      return fault?.kind === "unauthenticated" || fault?.kind === "forbidden" ? fault : undefined;
    } finally {
      x.state.admission.permit.onPipelineEnd();
      release();
    }
  }
}

/** A handshake that was admitted. */
interface Upgrade {
  readonly req: IncomingMessage;
  readonly raw: Socket;
  readonly head: Buffer;
  readonly x: HostExchange;
  /** The provider's socket, if it is already open. */
  readonly relay: OpenRelay | undefined;
}

/** Whether the provider's socket is opened before the handshake is answered. */
const opensEarly = (route: SocketRoute): boolean =>
  !("openSession" in route) && route.readsFirstMessage !== true;

/** A response that is never sent. */
class DiscardedResponse extends VirtualResponse {
  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
  }
}

/**
 * Creates the exchange of a handshake. It makes no call, so it needs no concurrency slot. `session`:
 * the handshake of an open connection, whose key is checked.
 */
function createHandshake(
  gen: Generation,
  { socket: { frontend, path, route: socketRoute }, params }: FoundSocket,
  req: IncomingMessage,
  res: ServerResponse,
  session?: HostExchange,
): HostExchange {
  const acceptsSecrets = !("openSession" in socketRoute) && socketRoute.acceptsClientSecrets;
  const route: Route = {
    method: "GET",
    path,
    handle: () => ({ status: 101 }),
    ...(acceptsSecrets === true && { acceptsClientSecrets: true }),
  };
  return new HostExchange({
    id: nextRequestId(),
    gen,
    route: { frontend, route, path },
    req,
    res,
    params,
    session,
    receive: () => Promise.reject(new Error("A handshake has no body.")),
  });
}

/** Headers that belong to the handshake, or to one request only. */
const HANDSHAKE_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "upgrade",
  "content-length",
  "content-type",
  "expect",
  "idempotency-key",
]);

/** Returns the headers that each request of a connection has. */
function headersOfRequests({ headers }: IncomingMessage): IncomingMessage["headers"] {
  const kept: IncomingMessage["headers"] = {};
  for (const name in headers)
    if (!HANDSHAKE_HEADERS.has(name) && !name.startsWith("sec-websocket-"))
      kept[name] = headers[name];
  // `extractCredential` may read the credential here.
  const offered = headers["sec-websocket-protocol"];
  return offered === undefined ? kept : { ...kept, "sec-websocket-protocol": offered };
}
