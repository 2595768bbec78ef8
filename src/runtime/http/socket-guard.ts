// Enforces limits on every open socket: the time for the headers, the time and rate of the body,
// concurrent requests, and the rate at which responses are read. Node checks its own deadlines only
// twice per minute, and the listener has no option for this interval. This class therefore sweeps
// all sockets every second.
import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { nextRequestId } from "../../lib/request-id.ts";
import { isSmallBody } from "../../lib/small-body.ts";
import { isStreamed } from "../../lib/net/streamed-bodies.ts";
import {
  ConnectionCounter,
  type ConnectionLimits,
  afterPendingReads,
  closeUnlessActive,
} from "./connection-counter.ts";
import { type Rejection } from "./request-guard.ts";
import { sendRawRejection } from "./send-rejection.ts";
import {
  createSocketState,
  isIdle,
  type SocketState,
  type SocketLimits,
  bytesSentBy,
  isTooSlow,
  isStalled,
} from "./socket-state.ts";

/** Bytes of a streamed body that have to arrive in each window. */
const MIN_STREAMED_BYTES = 64 * 1024;

// Response to a client that does not send its request in time.
const HEAD_TIMEOUT: Rejection = {
  status: 408,
  code: "head_timeout",
  message: "The request headers were not received in time.",
};
const BODY_TIMEOUT: Rejection = {
  status: 408,
  code: "body_timeout",
  message: "The request body was not received in time.",
};
const BODY_TOO_SLOW: Rejection = {
  status: 408,
  code: "body_slow",
  message: "The request body is received too slowly.",
};

/**
 * Called for each connection that is closed or not accepted. `id`: the request ID in the response,
 * if one was sent.
 */
type OnConnectionRejected = (refusal: Rejection, address: string, id: string) => void;

export class SocketGuard {
  #limits: SocketLimits;
  readonly #onRejected: OnConnectionRejected;
  readonly connections: ConnectionCounter;
  readonly #sockets = new Map<Socket, SocketState>();
  readonly #sweep: NodeJS.Timeout;
  readonly #sweepMs: number;
  /**
   * Updated once per sweep. Reading the clock for each request would cost more than the additional
   * precision is worth.
   */
  #now = performance.now();
  #announced = false;
  #draining = false;
  #inFlight = 0;

  constructor(limits: SocketLimits, onRejected: OnConnectionRejected = () => {}) {
    this.#limits = limits;
    this.#onRejected = onRejected;
    this.connections = new ConnectionCounter(limits);
    const { headTimeoutMs, requestTimeoutMs, minRateWindowMs, stalledWindowMs } = limits;
    this.#sweepMs = Math.min(
      1_000,
      ...[headTimeoutMs, requestTimeoutMs, minRateWindowMs, stalledWindowMs].map((ms) => ms / 4),
    );
    this.#sweep = setInterval(() => this.#checkSockets(), this.#sweepMs).unref();
  }

  /** Changes the limits for new connections. Open connections are not affected. */
  setLimits(limits: ConnectionLimits & Partial<Pick<SocketLimits, "stalledWindowMs">>): void {
    this.#limits = { ...this.#limits, ...limits };
    this.connections.setLimits(limits);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  track(socket: Socket): SocketState {
    const held = createSocketState(socket, this.#now);
    this.#sockets.set(socket, held);
    // When Node closes a connection with an unread body, unread bytes cause a TCP reset, which also
    // destroys the response.
    socket.destroySoon = () => this.#linger(held);
    // Needed because an upgrade removes Node's own error listener.
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#untrack(held));
    const refusal = this.connections.add(held.address);
    if (refusal) {
      held.isClosing = held.hasUnreadInput = true;
      const id = nextRequestId();
      this.#onRejected(refusal, held.address, id);
      sendRawRejection(socket, refusal, id);
      this.#linger(held);
    } else if (this.#draining) this.#closeWhenIdle(held);
    return held;
  }

  #untrack(state: SocketState): void {
    if (this.#sockets.delete(state.socket)) this.connections.remove(state.address);
    this.#inFlight -= state.inFlight;
    state.inFlight = 0;
    state.isClosing = true;
  }

  /**
   * Counts a request. Returns false if the request must not be answered. Returns "full" if the
   * request exceeds the limit of concurrent requests. It is then the last request on this socket.
   */
  enter(req: IncomingMessage, res: ServerResponse): boolean | "full" {
    const held = this.#sockets.get(req.socket) ?? this.track(req.socket);
    if (held.isClosing) {
      held.hasUnreadInput = true;
      return false;
    }
    held.headSince = undefined;
    held.latestResponse = res;
    held.inFlight++;
    this.#inFlight++;
    res.on("close", () => this.#onResponse(held));
    // Requests after a response with `Connection: close` are not answered.
    held.isClosing = this.#announced || ++held.requestCount >= this.#limits.requestsPerSocket;
    if (held.isClosing) res.shouldKeepAlive = false;
    const { headers } = req;
    const body =
      headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
    held.receiving = body ? req : undefined;
    if (body) {
      held.receivingSince = this.#now;
      held.receivingStartBytes = held.socket.bytesRead;
      held.receiveRate.reset();
      const keep = res.shouldKeepAlive;
      // A response before a large body is complete ends the connection. Node then sends
      // `Connection: close`.
      if (!isSmallBody(headers)) res.shouldKeepAlive = false;
      req.on("end", () => {
        if (!held.isClosing) res.shouldKeepAlive = keep;
        if (held.inFlight > 0) return;
        this.#markIdle(held);
        if (this.#draining) this.#closeWhenIdle(held);
      });
    }
    if (held.inFlight <= this.#limits.inFlightPerSocket) return true;
    held.isClosing = held.hasUnreadInput = true;
    held.socket.pause();
    return "full";
  }

  /**
   * Counts a WebSocket handshake as a request that is open until the socket is closed. Returns
   * false if the handshake must not be answered.
   */
  enterUpgrade(socket: Socket): boolean {
    const held = this.#sockets.get(socket) ?? this.track(socket);
    if (held.isClosing) return false;
    held.headSince = undefined;
    held.inFlight++;
    this.#inFlight++;
    return true;
  }

  /** Ignores all further requests on this socket. */
  closeAfterResponse(socket: Socket): void {
    const held = this.#sockets.get(socket);
    if (held) held.isClosing = true;
  }

  #onResponse(state: SocketState): void {
    if (state.inFlight === 0) return;
    state.inFlight--;
    this.#inFlight--;
    if (state.inFlight > 0) return;
    const mayAsk = state.latestResponse?.shouldKeepAlive === true;
    // A socket may stay open for minutes, so the last response is released.
    state.latestResponse = undefined;
    this.#markIdle(state);
    if (!this.#draining) return;
    if (mayAsk) this.#closeWhenIdle(state);
    else state.socket.destroySoon();
  }

  /**
   * Closes the socket after the grace period if it is idle. Otherwise it is closed after its next
   * response or by a deadline.
   */
  #closeWhenIdle(state: SocketState): void {
    if (state.receiving && !state.receiving.complete) return state.socket.destroySoon();
    closeUnlessActive(state.socket, this.#limits.closeGraceMs, () => isIdle(state));
  }

  /** Records that the received bytes do not belong to the next request. */
  #markIdle(state: SocketState): void {
    if (state.receiving?.complete) state.receiving = undefined;
    state.idleBytesRead = state.socket.bytesRead;
    state.idleSweeps = 0;
    state.headSince = undefined;
  }

  /**
   * Makes every response that has not started the last response on its socket. A response that
   * already allowed keep-alive is not affected.
   */
  announceClose(): void {
    this.#announced = true;
    for (const held of this.#sockets.values())
      if (held.latestResponse && !held.latestResponse.headersSent) {
        held.latestResponse.shouldKeepAlive = false;
        held.isClosing = true;
      }
  }

  /**
   * Closes each socket after its response has been sent. Data that has arrived on this machine is
   * read before an idle socket is closed. A client that has just connected, or was just allowed to
   * send another request, gets some time, because its request may be on its way.
   */
  drain(): void {
    this.announceClose();
    this.#draining = true;
    afterPendingReads(() => {
      for (const held of this.#sockets.values())
        // If more than one sweep has passed, at least one full interval has passed.
        if (isIdle(held) && held.socket.bytesRead > 0 && held.idleSweeps > 1) held.socket.destroy();
        else if (held.inFlight === 0) this.#closeWhenIdle(held);
    });
  }

  destroyAll(): void {
    for (const held of this.#sockets.values()) {
      this.#untrack(held);
      held.socket.destroy();
    }
  }

  stop(): void {
    clearInterval(this.#sweep);
  }

  #checkSockets(): void {
    this.#now = performance.now();
    for (const held of this.#sockets.values()) {
      held.idleSweeps++;
      if (held.receiving?.complete) held.receiving = undefined;
      if (this.#isOverdue(held)) this.#rejectAndClose(held, BODY_TIMEOUT);
      else if (this.#isSlow(held)) this.#rejectAndClose(held, BODY_TOO_SLOW);
      else if (this.#isStalled(held)) held.socket.destroy();
      else if (held.inFlight > 0) continue;
      else if (held.headSince === undefined) {
        if (held.socket.bytesRead > held.idleBytesRead) held.headSince = this.#now;
      } else if (this.#now - held.headSince > this.#limits.headTimeoutMs)
        this.#rejectAndClose(held, HEAD_TIMEOUT);
    }
  }

  /** Whether the body took too long. */
  #isOverdue({ receiving, receivingSince }: SocketState): boolean {
    const overdue = receiving && this.#now - receivingSince > this.#limits.requestTimeoutMs;
    return overdue === true && !isStreamed(receiving!);
  }

  /**
   * Whether the body arrives too slowly. A body that the gateway has not started to read does not
   * count as slow.
   */
  #isSlow({ receiving, receivingStartBytes, socket, receiveRate }: SocketState): boolean {
    if (!receiving || receiving.readableFlowing === null) {
      receiveRate.reset();
      return false;
    }
    const { minRateWindowMs, requestTimeoutMs } = this.#limits;
    const moved = receiveRate.sample(socket.bytesRead, minRateWindowMs / this.#sweepMs);
    if (moved === undefined) return false;
    if (isStreamed(receiving)) return moved < MIN_STREAMED_BYTES;
    const came = socket.bytesRead - receivingStartBytes;
    return isTooSlow(moved, came, requestTimeoutMs / minRateWindowMs);
  }

  /** Whether the client reads almost nothing of a response that is ready to be sent. */
  #isStalled({ socket, sendRate }: SocketState): boolean {
    const waiting = socket.writableLength;
    if (waiting === 0) {
      sendRate.reset();
      return false;
    }
    const moved = sendRate.sample(
      bytesSentBy(socket),
      this.#limits.stalledWindowMs / this.#sweepMs,
    );
    return moved !== undefined && isStalled(moved, waiting);
  }

  #rejectAndClose(state: SocketState, rejection: Rejection): void {
    // A connection that never sent a byte is not reported as a rejected request.
    const id = nextRequestId();
    if (state.socket.bytesRead > 0) this.#onRejected(rejection, state.address, id);
    this.#writeRejection(state, rejection, id);
    state.socket.destroy();
  }

  /**
   * Rejects data that is not a request, or a request that cannot be answered normally. Returns
   * false if it is too late for a response.
   */
  reject(socket: Socket, rejection: Rejection, id: string): boolean {
    const held = this.#sockets.get(socket);
    if (!held || held.isClosing) return false;
    const wasWritten = this.#writeRejection(held, rejection, id);
    if (wasWritten) this.#linger(held);
    else socket.destroy();
    return wasWritten;
  }

  /**
   * Writes a rejection. Returns false if a response has started, if other responses are pending, or
   * if the client has not sent any byte.
   */
  #writeRejection(state: SocketState, rejection: Rejection, id: string): boolean {
    state.isClosing = state.hasUnreadInput = true;
    const untouched =
      (state.inFlight === 0 && !state.receiving) ||
      (state.inFlight === 1 && !state.latestResponse?.headersSent);
    const canWrite = untouched && state.socket.bytesRead > 0 && state.socket.writable;
    if (canWrite) sendRawRejection(state.socket, rejection, id);
    return canWrite;
  }

  /** Half-closes the socket and reads a little longer, so that the client can read the response. */
  #linger(state: SocketState): void {
    const { socket } = state;
    const waits = state.receiving !== undefined && !state.receiving.complete;
    if (!waits && !state.hasUnreadInput) return Socket.prototype.destroySoon.call(socket);
    state.isClosing = true;
    let remainingBytes = this.#limits.lingerBytes;
    socket.end();
    socket.on("data", (chunk: Buffer) => {
      remainingBytes -= chunk.length;
      if (remainingBytes < 0) socket.destroy();
    });
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), this.#limits.lingerMs);
    socket.once("close", () => clearTimeout(timer));
  }
}
