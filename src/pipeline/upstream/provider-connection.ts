// One WebSocket of a provider. It carries one request at a time, and is kept between requests.
import { isAscii } from "node:buffer";
import type { WebSocket } from "ws";
import { createFault } from "../../model/error.ts";
import type { ProviderMessage, ProviderSession, SocketMessage } from "../../plugin/socket.ts";
import type { SocketLane } from "../exchange/socket-lane.ts";
import type { ConnectionUse, MessageReceiver, PooledConnection } from "./connection-pool.ts";

export class ProviderConnection implements PooledConnection {
  readonly session: ProviderSession;
  readonly use: ConnectionUse;
  readonly openedAt: number;
  /** Time when the last request ended. */
  idleSince: number;
  /** The lane whose requests it served last. */
  lane: SocketLane;
  readonly #ws: WebSocket;
  readonly #onFree: (connection: ProviderConnection) => void;
  #response: MessageReceiver | undefined;
  #hasReceivedData = true;
  #pingedAt: number;
  isClosed = false;

  constructor(of: {
    ws: WebSocket;
    session: ProviderSession;
    use: ConnectionUse;
    lane: SocketLane;
    now: number;
    /** Called when a request has ended. */
    onFree: (connection: ProviderConnection) => void;
    onClosed: (connection: ProviderConnection) => void;
  }) {
    this.session = of.session;
    this.use = of.use;
    this.lane = of.lane;
    this.openedAt = this.idleSince = this.#pingedAt = of.now;
    // No listener refers to `of`, which would keep the first lane in memory.
    const { ws, onFree, onClosed } = of;
    this.#onFree = onFree;
    this.#ws = ws;
    ws.on("message", (data, isBinary) => this.#onMessage(data as Buffer, isBinary));
    ws.on("ping", () => (this.#hasReceivedData = true));
    ws.on("pong", () => (this.#hasReceivedData = true));
    // The connection is closed next.
    ws.on("error", () => {});
    ws.once("close", () => {
      this.isClosed = true;
      onClosed(this);
      const response = this.#response;
      this.#response = undefined;
      response?.onClosed();
    });
    ws.resume();
  }

  get isIdle(): boolean {
    // A closing handshake may have begun before the connection is closed.
    const isOpen = !this.isClosed && this.#ws.readyState === this.#ws.OPEN;
    return isOpen && this.#response === undefined;
  }

  /** Sends a request. The response receives what the provider sends from here on. */
  send(message: SocketMessage, response: MessageReceiver): void {
    this.#response = response;
    response.start({
      pause: () => this.#ws.pause(),
      resume: () => this.#ws.resume(),
      terminate: () => this.terminate(),
    });
    this.#ws.send(message, { binary: typeof message !== "string" });
  }

  /** Sends a ping if no ping was sent for this time. Ends a connection that does not answer. */
  ping(now: number, everyMs: number): void {
    if (now - this.#pingedAt < everyMs) return;
    this.#pingedAt = now;
    if (!this.#hasReceivedData && !this.#ws.isPaused) return this.terminate();
    this.#hasReceivedData = false;
    this.#ws.ping();
  }

  close(): void {
    this.isClosed = true;
    this.#ws.close(1000);
  }

  terminate(): void {
    this.isClosed = true;
    this.#ws.terminate();
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    this.#hasReceivedData = true;
    let message: ProviderMessage | undefined;
    try {
      message = this.session.readMessage(
        isBinary ? data : data.toString(isAscii(data) ? "latin1" : "utf8"),
      );
    } catch (problem) {
      const response = this.#response;
      this.#response = undefined;
      this.terminate();
      return response?.abort(
        createFault("upstream", "The provider sent an invalid message.", {
          code: "malformed_answer",
          cause: problem,
        }),
      );
    }
    const response = this.#response;
    if (!message || !response) return;
    const isOver = message.isLast === true || message.rejection !== undefined;
    // The response may start the next request on this connection.
    if (isOver) this.#response = undefined;
    response.onMessage(message);
    if (!isOver) return;
    if (message.needsNewConnection === true) this.close();
    this.#onFree(this);
  }
}
