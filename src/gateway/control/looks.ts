// How often admins have looked at single requests: counted by whose command it was, and which ones is not kept.
import { BoundedMap } from "../../lib/bounded-map.ts";
import { type Giver, principalId } from "./giver.ts";

export interface CountedLooks {
  readonly actor: string;
  readonly command: string;
  readonly count: number;
  /** The last one, in Unix milliseconds. */
  readonly last: number;
}

/** Of one process; the oldest go first. */
const MOST = 1_000;

export class Looks {
  readonly #now: () => number;
  readonly #counted = new BoundedMap<string, CountedLooks>(MOST);

  constructor(now: () => number) {
    this.#now = now;
  }

  count(command: string, giver: Giver): void {
    const id = JSON.stringify([principalId(giver), command]);
    const count = (this.#counted.get(id)?.count ?? 0) + 1;
    this.#counted.set(id, { actor: giver.name, command, count, last: this.#now() });
  }

  /** The most first. */
  list(): readonly CountedLooks[] {
    return this.#counted
      .entries()
      .map(([, each]) => each)
      .toSorted((a, b) => b.count - a.count);
  }
}
