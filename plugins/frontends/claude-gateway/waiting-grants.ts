// The sign-ins of this process that wait for approval. Their number is limited. If there are
// too many, the network with the most of them loses its oldest one, so that a flood from one network
// ends no sign-in of another.
import { networkOf } from "./rate-limit.ts";

interface WaitingGrant {
  readonly id: string;
  readonly expiresAt: number;
}

export class WaitingGrants {
  readonly #max: number;
  /** Grants by network, the oldest first. No list is empty. */
  readonly #networks = new Map<string, WaitingGrant[]>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a grant. Returns the ID of the grant that has to end, if there are too many. */
  add(id: string, of: { address: string; expiresAt: number; now: number }): string | undefined {
    const network = networkOf(of.address);
    const grants = this.#networks.get(network);
    const grant = { id, expiresAt: of.expiresAt };
    if (grants) grants.push(grant);
    else this.#networks.set(network, [grant]);
    this.#size++;
    if (this.#size <= this.#max) return undefined;
    this.#forgetExpired(of.now);
    return this.#size > this.#max ? this.#takeOldestOfLargest() : undefined;
  }

  #forgetExpired(now: number): void {
    for (const [network, grants] of this.#networks) {
      const open = grants.filter(({ expiresAt }) => expiresAt > now);
      this.#size -= grants.length - open.length;
      if (open.length === 0) this.#networks.delete(network);
      else this.#networks.set(network, open);
    }
  }

  /** Among networks with the same number of grants, the one with the oldest grant loses it. */
  #takeOldestOfLargest(): string {
    let [largest, most]: [string, WaitingGrant[]] = ["", []];
    for (const [network, grants] of this.#networks) {
      const isOlder = grants.length === most.length && isBefore(grants[0]!, most[0]!);
      if (grants.length > most.length || isOlder) [largest, most] = [network, grants];
    }
    if (most.length === 1) this.#networks.delete(largest);
    this.#size--;
    return most.shift()!.id;
  }
}

/** All grants have the same lifetime. */
const isBefore = (a: WaitingGrant, b: WaitingGrant): boolean => a.expiresAt < b.expiresAt;
