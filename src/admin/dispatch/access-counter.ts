// How often admins have looked at single requests: counted by whose command it was, and which ones is not kept.
import { BoundedMap } from "../../lib/bounded-map.ts";
import { type CommandPrincipal, principalId } from "../../runtime/access/principal.ts";

export interface AccessCount {
  readonly actor: string;
  readonly command: string;
  readonly count: number;
  /** The last one, in Unix milliseconds. */
  readonly lastAt: number;
}

/** Of one process; the oldest go first. */
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

  /** The most first. */
  list(): readonly AccessCount[] {
    return this.#counts
      .entries()
      .map(([, each]) => each)
      .toSorted((a, b) => b.count - a.count);
  }
}
