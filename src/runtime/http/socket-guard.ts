// What every open socket must keep to: a head in time, a body in time and at a pace, not too many requests at once, and reading
// the answers that it asked for.
// Node checks its own deadlines twice a minute, and listhen has no option for it; so one sweep a second of our own.
import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { nextRequestId } from "../../lib/request-id.ts";
import { isSmallBody } from "../../lib/small-body.ts";
import { ConnectionCounter, type ConnectionLimits } from "./connection-counter.ts";
import type { Rejection } from "./request-guard.ts";
import { createSocketState, isIdle, type SocketState } from "./socket-state.ts";
import { bytesSentBy, isTooSlow, isStalled } from "./transfer-rate.ts";
import { afterPendingReads, closeUnlessActive } from "./close-grace.ts";
import { sendRawRejection } from "./send-rejection.ts";
import type { SocketLimits } from "./socket-limits.ts";

// What a client is told that does not send its request in time.
const HEAD_TIMEOUT: Rejection = {
  status: 408,
  code: "head_timeout",
  message: "The head of the request did not arrive in time.",
};
const BODY_TIMEOUT: Rejection = {
  status: 408,
  code: "body_timeout",
  message: "The body of the request did not arrive in time.",
};
const BODY_TOO_SLOW: Rejection = {
  status: 408,
  code: "body_slow",
  message: "The body of the request comes too slowly.",
};

/** Hears of each connection that is cut, or not let in. `id`: what the client is told to ask about, if there are words. */
type OnConnectionRejected = (refusal: Rejection, address: string, id: string) => void;

export class SocketGuard {
  #limits: SocketLimits;
  readonly #onRejected: OnConnectionRejected;
  readonly connections: ConnectionCounter;
  readonly #sockets = new Map<Socket, SocketState>();
  readonly #sweep: NodeJS.Timeout;
  readonly #sweepMs: number;
  /** Coarse on purpose: a clock read for each request would cost more than a second is worth here. */
  #now = performance.now();
  #announced = false;
  #draining = false;
  #inFlight = 0;

  constructor(limits: SocketLimits, told: OnConnectionRejected = () => {}) {
    this.#limits = limits;
    this.#onRejected = told;
    this.connections = new ConnectionCounter(limits);
    const { headTimeoutMs, requestTimeoutMs, minRateWindowMs, stalledWindowMs } = limits;
    this.#sweepMs = Math.min(
      1_000,
      ...[headTimeoutMs, requestTimeoutMs, minRateWindowMs, stalledWindowMs].map((ms) => ms / 4),
    );
    this.#sweep = setInterval(() => this.#checkSockets(), this.#sweepMs).unref();
  }

  /** From now on; connections that are open stay. */
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
    // Node ends a connection whose body it has not read by throwing the unread bytes back, answer included.
    socket.destroySoon = () => this.#linger(held);
    // An upgrade takes Node's own listener away.
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

  /** False: this request gets no answer of its own. "full": it is one too many, and the last one here. */
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
    // Only what came before "Connection: close" is answered.
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
      // An answer before a large body is in ends the connection: "Connection: close" goes out by itself.
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

  /** What still comes in here is not answered. */
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
    // A socket may stay for minutes; what its last request brought does not.
    state.latestResponse = undefined;
    this.#markIdle(state);
    if (!this.#draining) return;
    if (mayAsk) this.#closeWhenIdle(state);
    else state.socket.destroySoon();
  }

  /** What is not silent when the moment is over comes here once more when it is, or is cut off by a deadline. */
  #closeWhenIdle(state: SocketState): void {
    if (state.receiving && !state.receiving.complete) return state.socket.destroySoon();
    closeUnlessActive(state.socket, this.#limits.closeGraceMs, () => isIdle(state));
  }

  /** What has come so far is no part of a next request. */
  #markIdle(state: SocketState): void {
    if (state.receiving?.complete) state.receiving = undefined;
    state.idleBytesRead = state.socket.bytesRead;
    state.idleSweeps = 0;
    state.headSince = undefined;
  }

  /** From now on every answer says that it is the last one on its socket. What has said otherwise keeps its word. */
  announceClose(): void {
    this.#announced = true;
    for (const held of this.#sockets.values())
      if (held.latestResponse && !held.latestResponse.headersSent) {
        held.latestResponse.shouldKeepAlive = false;
        held.isClosing = true;
      }
  }

  /**
   * And a socket is closed when its answer has left. What has arrived on this machine is read before an idle one is closed; a client that has
   * just come, or has just been told that it may ask again, has a moment for its request: it may be under way.
   */
  drain(): void {
    this.announceClose();
    this.#draining = true;
    afterPendingReads(() => {
      for (const held of this.#sockets.values())
        // Between two sweeps lies a whole one of its times.
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
      if (held.receiving && this.#now - held.receivingSince > this.#limits.requestTimeoutMs)
        this.#rejectAndClose(held, BODY_TIMEOUT);
      else if (this.#isSlow(held)) this.#rejectAndClose(held, BODY_TOO_SLOW);
      else if (this.#isStalled(held)) held.socket.destroy();
      else if (held.inFlight > 0) continue;
      else if (held.headSince === undefined) {
        if (held.socket.bytesRead > held.idleBytesRead) held.headSince = this.#now;
      } else if (this.#now - held.headSince > this.#limits.headTimeoutMs)
        this.#rejectAndClose(held, HEAD_TIMEOUT);
    }
  }

  /** What waits for us, before its body is read, is not slow. */
  #isSlow({ receiving, receivingStartBytes, socket, receiveRate }: SocketState): boolean {
    if (!receiving || receiving.readableFlowing === null) {
      receiveRate.reset();
      return false;
    }
    const { minRateWindowMs, requestTimeoutMs } = this.#limits;
    const moved = receiveRate.sample(socket.bytesRead, minRateWindowMs / this.#sweepMs);
    return (
      moved !== undefined &&
      isTooSlow(moved, socket.bytesRead - receivingStartBytes, requestTimeoutMs / minRateWindowMs)
    );
  }

  /** What it asked for is ready, and hardly any of it leaves. */
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
    // A connection that never said a byte was no request.
    const id = nextRequestId();
    if (state.socket.bytesRead > 0) this.#onRejected(rejection, state.address, id);
    this.#writeRejection(state, rejection, id);
    state.socket.destroy();
  }

  /** Refuses what is no request, or not one that can be answered in the usual way. False: it is too late for words. */
  reject(socket: Socket, rejection: Rejection, id: string): boolean {
    const held = this.#sockets.get(socket);
    if (!held || held.isClosing) return false;
    const wasWritten = this.#writeRejection(held, rejection, id);
    if (wasWritten) this.#linger(held);
    else socket.destroy();
    return wasWritten;
  }

  /** Into an answer that has begun, or behind one, no other is written; a client that never sent a byte gets none. */
  #writeRejection(state: SocketState, rejection: Rejection, id: string): boolean {
    state.isClosing = state.hasUnreadInput = true;
    const untouched =
      (state.inFlight === 0 && !state.receiving) ||
      (state.inFlight === 1 && !state.latestResponse?.headersSent);
    const canWrite = untouched && state.socket.bytesRead > 0 && state.socket.writable;
    if (canWrite) sendRawRejection(state.socket, rejection, id);
    return canWrite;
  }

  /** Says goodbye and listens a little longer, so that the client can read why. */
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
