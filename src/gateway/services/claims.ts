// The Idempotency-Keys of the last day, in the process that knows for all. Hashes, numbers and ids alone, in memory: a gateway
// that starts anew knows none.
import type { ClaimedRequest, Claimed, ClaimOutcome, Claims } from "../../walk/claims.ts";

const KEPT_MS = 86_400_000;
/** Of one key; beyond it its own oldest goes. */
const MOST_OF_KEY = 10_000;
const MOST = 100_000;

interface Entry {
  readonly body: string;
  readonly request: string;
  /** The process that serves it. */
  readonly owner: object | undefined;
  readonly since: number;
  outcome: ClaimOutcome | undefined;
}

export class ClaimTable implements Claims {
  /** By key, then by name; the oldest first in both. */
  readonly #of = new Map<string, Map<string, Entry>>();
  readonly #now: () => number;
  #size = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get size(): number {
    return this.#size;
  }

  begin({ who, name, body, request }: ClaimedRequest, owner?: object): Claimed {
    const its = this.#of.get(who) ?? new Map<string, Entry>();
    const found = this.#fresh(who, its, name);
    if (found) {
      if (found.body !== body) return { state: "other" };
      return found.outcome ? { state: "over", outcome: found.outcome } : { state: "running" };
    }
    // What was asked last is last: the key whose turn comes first when there are too many has been silent longest.
    this.#of.delete(who);
    this.#of.set(who, its);
    its.set(name, { body, request, owner, since: this.#now(), outcome: undefined });
    this.#size++;
    if (its.size > MOST_OF_KEY) this.#forgetOldest(who, its);
    if (this.#size > MOST) {
      const [silent, oldest] = this.#of.entries().next().value!;
      this.#forgetOldest(silent, oldest);
    }
    return { state: "new" };
  }

  end(
    { who, name }: Pick<ClaimedRequest, "who" | "name">,
    outcome: ClaimOutcome | undefined,
  ): void {
    const its = this.#of.get(who);
    const entry = its?.get(name);
    if (!its || !entry) return;
    if (outcome) entry.outcome = outcome;
    else this.#forget(who, its, name);
  }

  gone(owner: object): void {
    for (const its of this.#of.values())
      for (const entry of its.values())
        if (entry.owner === owner)
          entry.outcome ??= { request: entry.request, status: 500, usage: {}, costNano: null };
  }

  #fresh(who: string, its: Map<string, Entry>, name: string): Entry | undefined {
    const entry = its.get(name);
    if (!entry?.outcome || this.#now() - entry.since < KEPT_MS) return entry;
    this.#forget(who, its, name);
    return undefined;
  }

  #forget(who: string, its: Map<string, Entry>, name: string): void {
    if (its.delete(name)) this.#size--;
    if (its.size === 0 && this.#of.get(who) === its) this.#of.delete(who);
  }

  #forgetOldest(who: string, its: Map<string, Entry>): void {
    this.#forget(who, its, its.keys().next().value!);
  }
}
