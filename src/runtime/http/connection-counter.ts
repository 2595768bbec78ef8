// Counts connections, in total and per address.
import { BOUNDS } from "../../lib/bounds.ts";
import type { Rejection } from "./request-guard.ts";
import type { Socket } from "node:net";

export interface ConnectionLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
}

const createRejection = (bound: "connections" | "connectionsPerAddress"): Rejection => ({
  status: 503,
  code: BOUNDS[bound].error[1],
  message: BOUNDS[bound].message,
  retryAfterMs: 1_000,
});
const TOO_MANY_IN_TOTAL = createRejection("connections");
const TOO_MANY_OF_ADDRESS = createRejection("connectionsPerAddress");

export class ConnectionCounter {
  #limits: ConnectionLimits;
  #total = 0;
  readonly #byAddress = new Map<string, number>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Changes the limits for new connections. Open connections are not affected. */
  setLimits(limits: ConnectionLimits): void {
    this.#limits = limits;
  }

  /**
   * Counts a connection and returns the rejection if it exceeds a limit. A rejected connection also
   * counts until it is closed.
   */
  add(address: string): Rejection | undefined {
    const here = (this.#byAddress.get(address) ?? 0) + 1;
    this.#byAddress.set(address, here);
    if (++this.#total > this.#limits.connections) return TOO_MANY_IN_TOTAL;
    // A Unix socket has no client addresses, so the limit per address does not apply.
    if (address === "") return undefined;
    return here > this.#limits.connectionsPerAddress ? TOO_MANY_OF_ADDRESS : undefined;
  }

  remove(address: string): void {
    this.#total--;
    const here = this.#byAddress.get(address)! - 1;
    if (here > 0) this.#byAddress.set(address, here);
    else this.#byAddress.delete(address);
  }
}

// Closes connections gracefully. Data that has arrived is read first, and a client that is about to
// send a request has a short time to do so.

/**
 * Calls `then` after all data that has arrived by now has been read: the event loop has polled
 * every socket again.
 */
export const afterPendingReads = (then: () => void): void =>
  void setImmediate(() => setImmediate(then));

/** Closes the socket after `withinMs` if it is idle then. */
export function closeUnlessActive(socket: Socket, withinMs: number, isIdle: () => boolean): void {
  const timer = setTimeout(() => afterPendingReads(() => isIdle() && socket.destroy()), withinMs);
  socket.once("close", () => clearTimeout(timer));
}

/**
 * Waits until the accept queue is empty, because closing the port would close the connections in
 * it. The event loop accepts only a few connections per turn.
 * @param acceptedCount Returns how many connections were accepted so far.
 */
export async function drainAcceptQueue(
  acceptedCount: () => number,
  withinMs: number,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (let before = -1; acceptedCount() > before && performance.now() < deadline;) {
    before = acceptedCount();
    await new Promise<void>(afterPendingReads);
  }
}
