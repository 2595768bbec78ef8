// The sign-ins of this process that wait for approval. Their number is limited. Beyond the limit, a
// network that has fewer of them ends the newest one of the largest network. All others are refused.
// A flood therefore ends no sign-in that is within the share of its network. The number of accepted
// sign-ins is limited too.
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

  /**
   * Adds a grant. Returns the ID of the grant that has to end in its place, if any. Returns "refused"
   * if the network already has its share.
   */
  add(
    id: string,
    of: { readonly address: string; readonly expiresAt: number; readonly now: number },
  ): { readonly ended: string | undefined } | "refused" {
    const network = networkOf(of.address, 48);
    let ended: string | undefined;
    if (this.#size >= this.#max) this.#forgetExpired(of.now);
    if (this.#size >= this.#max) {
      const largest = this.#findLargest();
      const [own, most] = [network, largest].map((name) => this.#networks.get(name)?.length ?? 0);
      // Otherwise two networks could take the same place from each other again and again.
      if (own! + 1 >= most!) return "refused";
      ended = this.#networks.get(largest)!.at(-1)!.id;
      this.#remove(largest, ended);
    }
    const grant = { id, expiresAt: of.expiresAt };
    const grants = this.#networks.get(network);
    if (grants) grants.push(grant);
    else this.#networks.set(network, [grant]);
    this.#size++;
    return { ended };
  }

  /** Removes a grant that could not be stored. */
  remove(id: string, address: string): void {
    this.#remove(networkOf(address, 48), id);
  }

  #remove(network: string, id: string): void {
    const grants = this.#networks.get(network) ?? [];
    const at = grants.findLastIndex((one) => one.id === id);
    if (at === -1) return;
    grants.splice(at, 1);
    if (grants.length === 0) this.#networks.delete(network);
    this.#size--;
  }

  #forgetExpired(now: number): void {
    for (const [network, grants] of this.#networks) {
      const open = grants.filter(({ expiresAt }) => expiresAt > now);
      this.#size -= grants.length - open.length;
      if (open.length === 0) this.#networks.delete(network);
      else this.#networks.set(network, open);
    }
  }

  /** Among networks with the same number of grants, returns the one with the newest grant. */
  #findLargest(): string {
    let [largest, most]: [string, readonly WaitingGrant[]] = ["", []];
    for (const [network, grants] of this.#networks) {
      const isTied = grants.length === most.length;
      if (grants.length > most.length || (isTied && !isBefore(grants.at(-1)!, most.at(-1)!)))
        [largest, most] = [network, grants];
    }
    return largest;
  }
}

/** All grants have the same lifetime. */
const isBefore = (a: WaitingGrant, b: WaitingGrant): boolean => a.expiresAt < b.expiresAt;
