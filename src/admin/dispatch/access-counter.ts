// Counts how often each principal has read individual requests. Which requests they were is not
// recorded.
import { BoundedMap } from "../../lib/bounded-map.ts";
import { type CommandPrincipal, principalId } from "../../runtime/access/principal.ts";

export interface AccessCount {
  readonly actor: string;
  readonly command: string;
  readonly count: number;
  /** Time of the last access, in Unix milliseconds. */
  readonly lastAt: number;
}

/** Maximum number of principals, per process. The oldest are dropped first. */
const MAX_COUNTS = 1_000;

export class AccessCounter {
  readonly #now: () => number;
  readonly #counts = new BoundedMap<string, AccessCount>(MAX_COUNTS);

  constructor(now: () => number) {
    this.#now = now;
  }

  count(command: string, principal: CommandPrincipal): void {
    const id = JSON.stringify([principalId(principal), command]);
    const count = (this.#counts.get(id)?.count ?? 0) + 1;
    this.#counts.set(id, { actor: principal.name, command, count, lastAt: this.#now() });
  }

  /** Returns the counts, highest first. */
  list(): readonly AccessCount[] {
    return this.#counts
      .entries()
      .map(([, each]) => each)
      .toSorted((a, b) => b.count - a.count);
  }
}
