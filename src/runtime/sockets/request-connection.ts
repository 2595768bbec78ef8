// A WebSocket whose messages are ordinary requests. Each request runs on the config generation that
// is current when the request starts. It uses the key of the handshake, which is checked again.
import type { IncomingMessage } from "node:http";
import { createFault, getFault, type Fault } from "../../model/error.ts";
import type { HeadersIn, JsonObject } from "../../model/values.ts";
import type { RequestSocketRoute, Route, SocketSession } from "../../plugin/frontend.ts";
import type { SocketMessage, SocketRequest } from "../../plugin/socket.ts";
import type { HostExchange } from "../../pipeline/exchange/exchange.ts";
import type { MountedSocket } from "../../pipeline/exchange/mounted.ts";
import { createVirtualRequest } from "../../pipeline/exchange/virtual-connection.ts";
import type { Generation } from "../../pipeline/generation.ts";
import { runSocketRequest } from "../../pipeline/pipeline.ts";
import { EventResponse, type WholeResponse } from "../../pipeline/sockets/event-response.ts";
import { CLOSE_CODES, type ClientSocket } from "./client-socket.ts";
import { renderSocketError } from "../../pipeline/sockets/socket-error.ts";
import { RequestLanes, type LaneMemory } from "./request-lanes.ts";
import type { SocketDescription } from "./live-sockets.ts";
import type { OpenSocket } from "./open-sockets.ts";

/** The generation in use, and the socket route that it has for this connection. */
export interface CurrentRoute {
  readonly gen: Generation;
  readonly mounted: MountedSocket | undefined;
}

export interface RequestConnectionOptions {
  readonly socket: ClientSocket;
  readonly handshake: HostExchange;
  readonly req: IncomingMessage;
  readonly session: SocketSession;
  /** Headers of the handshake that each request has. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly memory: LaneMemory;
  current(): CurrentRoute;
  checkKey(): Promise<Fault | undefined>;
  /** Called when a request was settled. */
  onSettled(x: HostExchange): void;
  onClosed(of: OpenSocket): void;
}

export class RequestConnection implements OpenSocket {
  readonly socket: ClientSocket;
  readonly frontend: string;
  readonly id: string;
  readonly account: string | undefined;
  readonly #options: RequestConnectionOptions;
  readonly #session: SocketSession;
  readonly #lanes: RequestLanes;
  readonly #running = new Set<EventResponse>();
  #notice: "draining" | "expired" | undefined;

  constructor(options: RequestConnectionOptions) {
    this.#options = options;
    this.socket = options.socket;
    this.frontend = options.handshake.frontend;
    this.id = options.handshake.id;
    this.account = options.handshake.state.admission.account?.path;
    this.#session = options.session;
    this.#lanes = new RequestLanes((request) => this.#run(request), options.memory);
  }

  get isBusy(): boolean {
    return this.#lanes.isBusy;
  }

  get running(): number {
    return this.#lanes.running;
  }

  describe(): SocketDescription {
    const { privacy } = this.#options.handshake;
    return { type: "requests", model: undefined, provider: undefined, privacy };
  }

  open(): void {
    this.socket.open({
      onMessage: (message) => this.#onMessage(message),
      onClose: () => this.#onClose(),
    });
  }

  checkKey(): Promise<Fault | undefined> {
    return this.#options.checkKey();
  }

  finish(notice: "draining" | "expired"): void {
    this.#notice ??= notice;
    if (this.isBusy || this.socket.isClosing) return;
    try {
      const message = this.#session.encodeNotice?.(this.#notice);
      if (message !== undefined) this.socket.send(message);
    } catch (problem) {
      this.#logFailure(problem);
    }
    this.socket.close(
      CLOSE_CODES.goingAway,
      this.#notice === "draining" ? "The gateway is shutting down." : "The connection expired.",
    );
  }

  closeWith(fault: Fault, code: number): void {
    this.#lanes.clear();
    this.#sendFault(fault, undefined);
    this.socket.close(code, fault.message);
  }

  #onMessage(message: SocketMessage): void {
    let request: SocketRequest | undefined;
    try {
      request = this.#session.readMessage(message);
      if (!request) return;
      if (this.#notice) throw createFault("overloaded", ENDING, { code: "connection_ending" });
      this.#lanes.add(request);
    } catch (problem) {
      return this.#sendFault(this.#toFault(problem), request, message);
    }
    this.#limitQueue();
  }

  /** Stops reading while the waiting requests are as large as the maximum size of one request. */
  #limitQueue(): void {
    const { maxBodyBytes } = this.#options.current().gen;
    if (this.#lanes.waitingBytes > maxBodyBytes) this.socket.pause("queue");
    else this.socket.resume("queue");
  }

  async #run(request: SocketRequest): Promise<void> {
    this.#limitQueue();
    const { gen, mounted } = this.#options.current();
    if (this.socket.isClosing) return;
    if (!mounted) return this.socket.close(CLOSE_CODES.goingAway, "The route was removed.");
    const { req, handshake } = this.#options;
    const response = new EventResponse({
      onEvent: (data) => this.#send(() => this.#session.encodeEvent(data, request)),
      onWhole: (whole) => this.#onWhole(whole, request),
      onTruncated: () => this.#sendFault(TRUNCATED, request),
      whenWritable: () => this.socket.whenWritable(),
    });
    this.#running.add(response);
    const session = this.#session;
    const route: Route = {
      ...(mounted.route as RequestSocketRoute),
      method: "POST",
      ...(session.readInput && { readInput: (x, body) => session.readInput!(x, body, request) }),
    };
    let x: HostExchange | undefined;
    try {
      x = await runSocketRequest(
        gen,
        { frontend: mounted.frontend, route, path: mounted.path },
        {
          req: createVirtualRequest({
            path: req.url ?? "/",
            headers: this.#options.headers,
            body: typeof request.body === "string" ? Buffer.from(request.body) : request.body,
            socket: req.socket,
          }),
          res: response.asServerResponse,
          params: handshake.params,
        },
        { lane: { connection: this.socket, name: request.lane }, session: handshake },
      );
    } catch (problem) {
      this.#sendFault(this.#toFault(problem), request);
    }
    if (!response.writableFinished && !response.destroyed) await endOf(response);
    this.#running.delete(response);
    if (x) this.#onSettled(x);
    // The lane still counts as busy at this point. The end is reported when it no longer is.
    if (this.#notice) setImmediate(() => this.finish(this.#notice!));
  }

  #onSettled(x: HostExchange): void {
    const { fault } = x.state.outcome;
    this.#options.onSettled(x);
    // The key was revoked, or may not use this frontend any more.
    if (!x.identity && (fault?.kind === "unauthenticated" || fault?.kind === "forbidden"))
      this.socket.close(CLOSE_CODES.policy, fault.message);
  }

  #onWhole({ status, headers, body }: WholeResponse, request: SocketRequest): void {
    if (status < 300) return this.#send(() => this.#session.encodeEvent(body, request));
    const error = { status, headers: headers as HeadersIn, body: parseObject(body) };
    this.#send(() => this.#session.encodeError(error, request));
  }

  #sendFault(fault: Fault, request: SocketRequest | undefined, message?: SocketMessage): void {
    if (this.socket.isClosing) return;
    const { gen, mounted } = this.#options.current();
    const frontend = mounted?.frontend ?? this.#options.handshake.state.frontend;
    const error = renderSocketError(gen, frontend, this.#options.handshake, fault);
    this.#send(() => this.#session.encodeError(error, request, message));
  }

  #send(encode: () => SocketMessage | undefined): void {
    try {
      const message = encode();
      if (message !== undefined) this.socket.send(message);
    } catch (problem) {
      this.#logFailure(problem);
      this.socket.close(CLOSE_CODES.internal, "Internal error.");
    }
  }

  #toFault(problem: unknown): Fault {
    const fault = getFault(problem);
    if (fault) return fault;
    this.#logFailure(problem);
    return { kind: "internal", message: "Internal error." };
  }

  #logFailure(err: unknown): void {
    const { gen } = this.#options.current();
    gen.log.error({ socket: this.id, frontend: this.frontend, err }, "socket session failed");
  }

  #onClose(): void {
    this.#lanes.clear();
    for (const response of this.#running) response.destroy();
    this.#options.onClosed(this);
    try {
      this.#session.close?.();
    } catch (problem) {
      this.#logFailure(problem);
    }
  }
}

const ENDING = "This connection is about to be closed. Open a new connection.";
const TRUNCATED: Fault = {
  kind: "upstream",
  code: "response_truncated",
  message: "The response ended before it was complete.",
};

const endOf = (response: EventResponse): Promise<void> =>
  new Promise((resolve) => void response.once("close", resolve));

function parseObject(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch {
    return {};
  }
}
