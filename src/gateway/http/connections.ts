// How many connections there are, in all and of each address.
import { BOUNDS } from "../../lib/bounds.ts";
import type { Refusal } from "./door.ts";

export interface CrowdLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
}

const refusal = (bound: "connections" | "connectionsPerAddress"): Refusal => ({
  status: 503,
  code: BOUNDS[bound].error[1],
  message: BOUNDS[bound].beyond,
  retryAfterMs: 1_000,
});
const IN_ALL = refusal("connections");
const OF_ADDRESS = refusal("connectionsPerAddress");

export class Crowd {
  #limits: CrowdLimits;
  #all = 0;
  readonly #of = new Map<string, number>();

  constructor(limits: CrowdLimits) {
    this.#limits = limits;
  }

  /** From now on; connections that are open stay. */
  limit(limits: CrowdLimits): void {
    this.#limits = limits;
  }

  /** Counts a connection, also one too many: it is open until it is closed. */
  enter(address: string): Refusal | undefined {
    const here = (this.#of.get(address) ?? 0) + 1;
    this.#of.set(address, here);
    if (++this.#all > this.#limits.connections) return IN_ALL;
    // A unix socket has no addresses: all clients that come by it are one.
    if (address === "") return undefined;
    return here > this.#limits.connectionsPerAddress ? OF_ADDRESS : undefined;
  }

  leave(address: string): void {
    this.#all--;
    const here = this.#of.get(address)! - 1;
    if (here > 0) this.#of.set(address, here);
    else this.#of.delete(address);
  }
}
