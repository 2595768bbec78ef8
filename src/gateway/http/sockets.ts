// What every open socket must keep to: a head in time, a body in time and at a pace, not too many requests at once, and reading
// the answers that it asked for.
// Node checks its own deadlines twice a minute, and listhen has no option for it; so one sweep a second of our own.
import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { nextId } from "../../lib/id.ts";
import { isSmallBody } from "../../lib/small-body.ts";
import { Crowd, type CrowdLimits } from "./connections.ts";
import type { Refusal } from "./door.ts";
import { heldOf, isSilent, type Held } from "./held.ts";
import { gone, slow, stuck } from "./pace.ts";
import { afterLook, awaitWord } from "./last-look.ts";
import { LATE_BODY, LATE_HEAD, SLOW_BODY } from "./late.ts";
import { rawRefusal } from "./refusal.ts";
import type { SocketLimits } from "./socket-limits.ts";

/** Hears of each connection that is cut, or not let in. `id`: what the client is told to ask about, if there are words. */
type SocketListener = (refusal: Refusal, address: string, id: string) => void;

export class Sockets {
  #limits: SocketLimits;
  readonly #told: SocketListener;
  readonly crowd: Crowd;
  readonly #held = new Map<Socket, Held>();
  readonly #sweep: NodeJS.Timeout;
  readonly #every: number;
  /** Coarse on purpose: a clock read for each request would cost more than a second is worth here. */
  #now = performance.now();
  #announced = false;
  #draining = false;
  #inFlight = 0;

  constructor(limits: SocketLimits, told: SocketListener = () => {}) {
    this.#limits = limits;
    this.#told = told;
    this.crowd = new Crowd(limits);
    const { headMs, receiptMs, slowMs, stuckMs } = limits;
    this.#every = Math.min(1_000, ...[headMs, receiptMs, slowMs, stuckMs].map((ms) => ms / 4));
    this.#sweep = setInterval(() => this.#look(), this.#every).unref();
  }

  /** From now on; connections that are open stay. */
  limit(limits: CrowdLimits & Partial<Pick<SocketLimits, "stuckMs">>): void {
    this.#limits = { ...this.#limits, ...limits };
    this.crowd.limit(limits);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  opened(socket: Socket): Held {
    const held = heldOf(socket, this.#now);
    this.#held.set(socket, held);
    // Node ends a connection whose body it has not read by throwing the unread bytes back, answer included.
    socket.destroySoon = () => this.#leave(held);
    // An upgrade takes Node's own listener away.
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#forget(held));
    const refusal = this.crowd.enter(held.address);
    if (refusal) {
      held.over = held.unread = true;
      const id = nextId();
      this.#told(refusal, held.address, id);
      rawRefusal(socket, refusal, id);
      this.#leave(held);
    } else if (this.#draining) this.#part(held);
    return held;
  }

  #forget(held: Held): void {
    if (this.#held.delete(held.socket)) this.crowd.leave(held.address);
    this.#inFlight -= held.inFlight;
    held.inFlight = 0;
    held.over = true;
  }

  /** False: this request gets no answer of its own. "full": it is one too many, and the last one here. */
  enter(req: IncomingMessage, res: ServerResponse): boolean | "full" {
    const held = this.#held.get(req.socket) ?? this.opened(req.socket);
    if (held.over) {
      held.unread = true;
      return false;
    }
    held.headSince = undefined;
    held.latest = res;
    held.inFlight++;
    this.#inFlight++;
    res.on("close", () => this.#answered(held));
    // Only what came before "Connection: close" is answered.
    held.over = this.#announced || ++held.requests >= this.#limits.requestsPerSocket;
    if (held.over) res.shouldKeepAlive = false;
    const { headers } = req;
    const body =
      headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
    held.receiving = body ? req : undefined;
    if (body) {
      held.receivingSince = this.#now;
      held.receivingFrom = held.socket.bytesRead;
      held.came.rest();
      const keep = res.shouldKeepAlive;
      // An answer before a large body is in ends the connection: "Connection: close" goes out by itself.
      if (!isSmallBody(headers)) res.shouldKeepAlive = false;
      req.on("end", () => {
        if (!held.over) res.shouldKeepAlive = keep;
        if (held.inFlight > 0) return;
        this.#quiet(held);
        if (this.#draining) this.#part(held);
      });
    }
    if (held.inFlight <= this.#limits.inFlightPerSocket) return true;
    held.over = held.unread = true;
    held.socket.pause();
    return "full";
  }

  /** What still comes in here is not answered. */
  last(socket: Socket): void {
    const held = this.#held.get(socket);
    if (held) held.over = true;
  }

  #answered(held: Held): void {
    if (held.inFlight === 0) return;
    held.inFlight--;
    this.#inFlight--;
    if (held.inFlight > 0) return;
    const mayAsk = held.latest?.shouldKeepAlive === true;
    // A socket may stay for minutes; what its last request brought does not.
    held.latest = undefined;
    this.#quiet(held);
    if (!this.#draining) return;
    if (mayAsk) this.#part(held);
    else held.socket.destroySoon();
  }

  /** What is not silent when the moment is over comes here once more when it is, or is cut off by a deadline. */
  #part(held: Held): void {
    if (held.receiving && !held.receiving.complete) return held.socket.destroySoon();
    awaitWord(held.socket, this.#limits.lastMs, () => isSilent(held));
  }

  /** What has come so far is no part of a next request. */
  #quiet(held: Held): void {
    if (held.receiving?.complete) held.receiving = undefined;
    held.quietAt = held.socket.bytesRead;
    held.quietFor = 0;
    held.headSince = undefined;
  }

  /** From now on every answer says that it is the last one on its socket. What has said otherwise keeps its word. */
  announce(): void {
    this.#announced = true;
    for (const held of this.#held.values())
      if (held.latest && !held.latest.headersSent) {
        held.latest.shouldKeepAlive = false;
        held.over = true;
      }
  }

  /**
   * And a socket is closed when its answer has left. What has arrived on this machine is read before an idle one is closed; a client that has
   * just come, or has just been told that it may ask again, has a moment for its request: it may be under way.
   */
  drain(): void {
    this.announce();
    this.#draining = true;
    afterLook(() => {
      for (const held of this.#held.values())
        // Between two sweeps lies a whole one of its times.
        if (isSilent(held) && held.socket.bytesRead > 0 && held.quietFor > 1) held.socket.destroy();
        else if (held.inFlight === 0) this.#part(held);
    });
  }

  kill(): void {
    for (const held of this.#held.values()) {
      this.#forget(held);
      held.socket.destroy();
    }
  }

  end(): void {
    clearInterval(this.#sweep);
  }

  #look(): void {
    this.#now = performance.now();
    for (const held of this.#held.values()) {
      held.quietFor++;
      if (held.receiving?.complete) held.receiving = undefined;
      if (held.receiving && this.#now - held.receivingSince > this.#limits.receiptMs)
        this.#cut(held, LATE_BODY);
      else if (this.#isSlow(held)) this.#cut(held, SLOW_BODY);
      else if (this.#isStuck(held)) held.socket.destroy();
      else if (held.inFlight > 0) continue;
      else if (held.headSince === undefined) {
        if (held.socket.bytesRead > held.quietAt) held.headSince = this.#now;
      } else if (this.#now - held.headSince > this.#limits.headMs) this.#cut(held, LATE_HEAD);
    }
  }

  /** What waits for us, before its body is read, is not slow. */
  #isSlow({ receiving, receivingFrom, socket, came }: Held): boolean {
    if (!receiving || receiving.readableFlowing === null) {
      came.rest();
      return false;
    }
    const { slowMs, receiptMs } = this.#limits;
    const moved = came.look(socket.bytesRead, slowMs / this.#every);
    return moved !== undefined && slow(moved, socket.bytesRead - receivingFrom, receiptMs / slowMs);
  }

  /** What it asked for is ready, and hardly any of it leaves. */
  #isStuck({ socket, left }: Held): boolean {
    const waiting = socket.writableLength;
    if (waiting === 0) {
      left.rest();
      return false;
    }
    const moved = left.look(gone(socket), this.#limits.stuckMs / this.#every);
    return moved !== undefined && stuck(moved, waiting);
  }

  #cut(held: Held, refusal: Refusal): void {
    // A connection that never said a byte was no request.
    const id = nextId();
    if (held.socket.bytesRead > 0) this.#told(refusal, held.address, id);
    this.#say(held, refusal, id);
    held.socket.destroy();
  }

  /** Refuses what is no request, or not one that can be answered in the usual way. False: it is too late for words. */
  refuse(socket: Socket, refusal: Refusal, id: string): boolean {
    const held = this.#held.get(socket);
    if (!held || held.over) return false;
    const said = this.#say(held, refusal, id);
    if (said) this.#leave(held);
    else socket.destroy();
    return said;
  }

  /** Into an answer that has begun, or behind one, no other is written; a client that never sent a byte gets none. */
  #say(held: Held, refusal: Refusal, id: string): boolean {
    held.over = held.unread = true;
    const untouched =
      (held.inFlight === 0 && !held.receiving) ||
      (held.inFlight === 1 && !held.latest?.headersSent);
    const said = untouched && held.socket.bytesRead > 0 && held.socket.writable;
    if (said) rawRefusal(held.socket, refusal, id);
    return said;
  }

  /** Says goodbye and listens a little longer, so that the client can read why. */
  #leave(held: Held): void {
    const { socket } = held;
    const waits = held.receiving !== undefined && !held.receiving.complete;
    if (!waits && !held.unread) return Socket.prototype.destroySoon.call(socket);
    held.over = true;
    let left = this.#limits.lingerBytes;
    socket.end();
    socket.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) socket.destroy();
    });
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), this.#limits.lingerMs);
    socket.once("close", () => clearTimeout(timer));
  }
}
