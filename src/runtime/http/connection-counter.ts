// Counts connections, in total and per address.
import { BOUNDS } from "../../lib/bounds.ts";
import type { Rejection } from "./request-guard.ts";

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

  /** Changes the limits for new connections. Open connections stay. */
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
