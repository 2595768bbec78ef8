// Tracks the open WebSockets of this process: sends pings, enforces time limits, and closes sockets
// when their key is revoked or the gateway shuts down.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Fault } from "../../model/error.ts";
import { CLOSE_CODES, type ClientSocket } from "./client-socket.ts";
import { CLOSED_BY_ADMIN, type LiveSocket, type SocketDescription } from "./live-sockets.ts";

/** Times of a WebSocket, in milliseconds. */
export interface SocketTimes {
  readonly pingMs: number;
  /** Maximum time without a message and without a running response. */
  readonly idleMs: number;
  /** Maximum age of a socket. */
  readonly ageMs: number;
  /** Maximum time in which a message must be complete. */
  readonly messageMs: number;
  /** Interval at which keys are checked in addition to the checks after each change of keys. */
  readonly checkMs: number;
}

export const SOCKET_TIMES: SocketTimes = {
  // This interval is below the idle timeout of common load balancers, which is 30 or 60 s.
  pingMs: 20_000,
  idleMs: 300_000,
  // The maximum age of a Responses connection at OpenAI.
  ageMs: 3_600_000,
  messageMs: 120_000,
  checkMs: 60_000,
};

/** The connection to a client, as the registry uses it. */
export type TrackedSocket = Pick<
  ClientSocket,
  | "isClosing"
  | "isPaused"
  | "hasPartialMessage"
  | "partialSince"
  | "pauseReasons"
  | "messagesIn"
  | "bytesIn"
  | "bytesOut"
  | "bufferedBytes"
  | "hasReceivedData"
  | "key"
  | "ping"
  | "close"
  | "terminate"
>;

/** One open connection, as the registry sees it. */
export interface OpenSocket {
  readonly socket: TrackedSocket;
  readonly frontend: string;
  /** ID of the handshake. */
  readonly id: string;
  /** Path of the key's account. */
  readonly account: string | undefined;
  /** Number of responses that run. */
  readonly running: number;
  /** Whether a response runs or a request waits. */
  readonly isBusy: boolean;
  /** Properties that operators see. */
  describe(): SocketDescription;
  /** Sends the protocol's notice, and closes the connection when nothing runs any more. */
  finish(notice: "draining" | "expired"): void;
  /** Sends an error and closes the connection. */
  closeWith(fault: Fault, code: number): void;
  /** Returns the fault if the key may no longer use the connection. */
  checkKey(): Promise<Fault | undefined>;
}

interface Entry {
  readonly of: OpenSocket;
  readonly openedAt: number;
  lastActive: number;
  lastBytes: number;
  lastPing: number;
  lastCheck: number;
}

const SWEEP_MS = 1_000;
/** Maximum number of listed sockets per process. */
const MAX_LISTED = 500;
/** Sockets whose keys are checked in one turn of the event loop. */
const CHECKS_PER_TURN = 64;

export class OpenSockets {
  readonly #times: SocketTimes;
  readonly #now: () => number;
  readonly #entries = new Map<OpenSocket, Entry>();
  #sweeper: NodeJS.Timeout | undefined;
  #sweepListener: () => void = () => {};
  #checking: Promise<void> | undefined;
  #checkAgain = false;
  isDraining = false;

  constructor(times: SocketTimes = SOCKET_TIMES, now: () => number = () => performance.now()) {
    this.#times = times;
    this.#now = now;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Number of responses that run on all sockets. */
  get running(): number {
    let sum = 0;
    for (const { running } of this.#entries.keys()) sum += running;
    return sum;
  }

  /** Returns the number of open sockets of each frontend. */
  countByFrontend(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { frontend } of this.#entries.keys()) counts[frontend] = (counts[frontend] ?? 0) + 1;
    return counts;
  }

  list(): Iterable<OpenSocket> {
    return this.#entries.keys();
  }

  /** Lists the oldest sockets, as operators see them. */
  listOldest(): LiveSocket[] {
    const now = this.#now();
    const startOfClock = wallClock() - now;
    const shown = [...this.#entries.values()].slice(0, MAX_LISTED);
    return shown.map(({ of, openedAt }) => ({
      id: of.id,
      frontend: of.frontend,
      key: of.socket.key,
      account: of.account,
      ...of.describe(),
      openedAt: Math.round(startOfClock + openedAt),
      ageMs: Math.round(now - openedAt),
      running: of.running,
      messagesIn: of.socket.messagesIn,
      bytesIn: of.socket.bytesIn,
      bytesOut: of.socket.bytesOut,
      bufferedBytes: of.socket.bufferedBytes,
      pauseReasons: of.socket.pauseReasons,
      isClosing: of.socket.isClosing,
    }));
  }

  /** Closes a socket for an operator. Returns false if this process has no such socket. */
  closeForAdmin(id: string): boolean {
    for (const one of this.#entries.keys()) {
      if (one.id !== id) continue;
      if (!one.socket.isClosing) one.closeWith(CLOSED_BY_ADMIN, CLOSE_CODES.policy);
      return true;
    }
    return false;
  }

  add(of: OpenSocket): void {
    const now = this.#now();
    this.#entries.set(of, {
      of,
      openedAt: now,
      lastActive: now,
      lastBytes: 0,
      // Spread over the interval, so that many sockets do not ping at the same time.
      lastPing: now - ((this.#entries.size * 997) % this.#times.pingMs),
      lastCheck: now,
    });
    this.#sweeper ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
    if (this.isDraining) of.finish("draining");
  }

  remove(of: OpenSocket): void {
    this.#entries.delete(of);
    if (this.#entries.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  /** Sets what is called every second while a socket is open. */
  onSweep(listener: () => void): void {
    this.#sweepListener = listener;
  }

  /** Enforces the times of every socket. */
  sweep(): void {
    const now = this.#now();
    for (const entry of this.#entries.values()) this.#sweepOne(entry, now);
    this.#sweepListener();
  }

  #sweepOne(entry: Entry, now: number): void {
    const { of } = entry;
    const { socket } = of;
    const { pingMs, idleMs, ageMs, messageMs, checkMs } = this.#times;
    if (socket.isClosing) return;
    if (socket.hasPartialMessage) socket.partialSince ??= now;
    const bytes = socket.messagesIn + socket.bytesOut;
    if (bytes !== entry.lastBytes || of.isBusy) entry.lastActive = now;
    entry.lastBytes = bytes;
    if (socket.partialSince !== undefined && now - socket.partialSince > messageMs)
      return socket.close(CLOSE_CODES.policy, "The message was not received in time.");
    if (now - entry.openedAt > ageMs) return of.finish("expired");
    if (now - entry.lastActive > idleMs)
      return socket.close(CLOSE_CODES.goingAway, "The connection was idle.");
    if (now - entry.lastPing >= pingMs) {
      entry.lastPing = now;
      // While the gateway does not read from the socket, it cannot receive the answer.
      if (!socket.hasReceivedData && !socket.isPaused) return socket.terminate();
      socket.ping();
    }
    if (now - entry.lastCheck >= checkMs) {
      entry.lastCheck = now;
      void this.#check(of);
    }
  }

  /** Checks the keys of all sockets, because a key or an account changed. */
  checkKeys(): Promise<void> {
    this.#checkAgain = true;
    return (this.#checking ??= this.#checkAll().finally(() => (this.#checking = undefined)));
  }

  async #checkAll(): Promise<void> {
    while (this.#checkAgain) {
      this.#checkAgain = false;
      const all = [...this.#entries.keys()];
      for (let at = 0; at < all.length; at += CHECKS_PER_TURN) {
        await Promise.all(all.slice(at, at + CHECKS_PER_TURN).map((one) => this.#check(one)));
        await new Promise((resolve) => void setImmediate(resolve));
      }
    }
  }

  async #check(of: OpenSocket): Promise<void> {
    if (of.socket.isClosing) return;
    const fault = await of.checkKey();
    if (fault) of.closeWith(fault, CLOSE_CODES.policy);
  }

  /** Closes the sockets of a key whose budget is spent. */
  closeSpent(fault: Fault, isOf: (one: OpenSocket) => boolean): void {
    for (const one of this.#entries.keys())
      if (!one.socket.isClosing && isOf(one)) one.closeWith(fault, CLOSE_CODES.policy);
  }

  /** Closes each socket as soon as nothing runs on it. New sockets are closed immediately. */
  drain(): void {
    this.isDraining = true;
    for (const one of this.#entries.keys()) one.finish("draining");
  }

  /** Drains after a delay, because another process now serves new clients. */
  drainAfter(ms: number): void {
    setTimeout(() => this.drain(), Math.max(0, ms)).unref();
  }
}
