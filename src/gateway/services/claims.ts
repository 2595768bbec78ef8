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

/** Of one key, by name; the oldest first in both. */
class Names {
  readonly under = new Map<string, Entry>();
  readonly over = new Map<string, Entry>();

  get size(): number {
    return this.under.size + this.over.size;
  }

  find(name: string): Entry | undefined {
    return this.under.get(name) ?? this.over.get(name);
  }

  end(name: string, entry: Entry, outcome: ClaimOutcome): void {
    entry.outcome = outcome;
    this.under.delete(name);
    this.over.set(name, entry);
  }

  forget(name: string): void {
    if (!this.under.delete(name)) this.over.delete(name);
  }

  /** What is under way goes last: without its name it would be served, and billed, once more. */
  forgetOldest(): void {
    const from = this.over.size > 0 ? this.over : this.under;
    from.delete(from.keys().next().value!);
  }
}

export class ClaimTable implements Claims {
  /** By key; the one that has been silent longest first. */
  readonly #of = new Map<string, Names>();
  readonly #now: () => number;
  #size = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get size(): number {
    return this.#size;
  }

  begin({ who, name, body, request }: ClaimedRequest, owner?: object): Claimed {
    const its = this.#of.get(who) ?? new Names();
    const found = this.#fresh(who, its, name);
    if (found) {
      if (found.body !== body) return { state: "other" };
      return found.outcome ? { state: "over", outcome: found.outcome } : { state: "running" };
    }
    this.#of.delete(who);
    this.#of.set(who, its);
    its.under.set(name, { body, request, owner, since: this.#now(), outcome: undefined });
    this.#size++;
    if (its.size > MOST_OF_KEY) this.#lose(who, its, () => its.forgetOldest());
    if (this.#size > MOST) {
      const [silent, oldest] = this.#of.entries().next().value!;
      this.#lose(silent, oldest, () => oldest.forgetOldest());
    }
    return { state: "new" };
  }

  end(
    { who, name, request }: Pick<ClaimedRequest, "who" | "name" | "request">,
    outcome: ClaimOutcome | undefined,
  ): void {
    const its = this.#of.get(who);
    const entry = its?.under.get(name);
    // Forgotten meanwhile, its name may be another one's.
    if (!its || entry?.request !== request) return;
    if (outcome) its.end(name, entry, outcome);
    else this.#lose(who, its, () => its.forget(name));
  }

  gone(owner: object): void {
    for (const its of this.#of.values())
      for (const [name, entry] of its.under)
        if (entry.owner === owner)
          its.end(name, entry, { request: entry.request, status: 500, usage: {}, costNano: null });
  }

  #fresh(who: string, its: Names, name: string): Entry | undefined {
    const entry = its.find(name);
    if (!entry?.outcome || this.#now() - entry.since < KEPT_MS) return entry;
    this.#lose(who, its, () => its.forget(name));
    return undefined;
  }

  /** One of its names goes. */
  #lose(who: string, its: Names, forget: () => void): void {
    const before = its.size;
    forget();
    this.#size -= before - its.size;
    if (its.size === 0 && this.#of.get(who) === its) this.#of.delete(who);
  }
}
