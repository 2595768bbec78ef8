// Keeps the idempotency keys of the last 24 hours, in the process that serves all other processes.
// It stores only hashes, numbers, and IDs, in memory. After a restart, it is empty.
import type {
  IdempotencyClaim,
  ClaimResult,
  IdempotencyOutcome,
  IdempotencyRegistry,
} from "../../pipeline/generation.ts";

const TTL_MS = 86_400_000;
/** Maximum entries per API key. Beyond it, the oldest entry of that key is dropped. */
const MAX_PER_KEY = 10_000;
const MAX_TOTAL = 100_000;

interface ClaimEntry {
  readonly bodyHash: string;
  readonly request: string;
  /** Process that serves the request. */
  readonly owner: object | undefined;
  readonly since: number;
  outcome: IdempotencyOutcome | undefined;
}

/**
 * Claims of one API key, by hash of the idempotency key. Both maps are ordered, with the oldest
 * entries first.
 */
class KeyClaims {
  readonly running = new Map<string, ClaimEntry>();
  readonly finished = new Map<string, ClaimEntry>();

  get size(): number {
    return this.running.size + this.finished.size;
  }

  find(name: string): ClaimEntry | undefined {
    return this.running.get(name) ?? this.finished.get(name);
  }

  finish(name: string, entry: ClaimEntry, outcome: IdempotencyOutcome): void {
    entry.outcome = outcome;
    this.running.delete(name);
    this.finished.set(name, entry);
  }

  remove(name: string): void {
    if (!this.running.delete(name)) this.finished.delete(name);
  }

  /**
   * Drops the oldest entry. Open requests are dropped last, because a repeated request would
   * otherwise be served and billed twice.
   */
  evictOldest(): void {
    const from = this.finished.size > 0 ? this.finished : this.running;
    from.delete(from.keys().next().value!);
  }
}

export class InMemoryIdempotencyRegistry implements IdempotencyRegistry {
  /** Claims by API key. The key that has been unused for the longest time is first. */
  readonly #byKey = new Map<string, KeyClaims>();
  readonly #now: () => number;
  #size = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get size(): number {
    return this.#size;
  }

  claim(
    { keyId, idempotencyKeyHash, bodyHash, requestId }: IdempotencyClaim,
    owner?: object,
  ): ClaimResult {
    const its = this.#byKey.get(keyId) ?? new KeyClaims();
    const found = this.#findLive(keyId, its, idempotencyKeyHash);
    if (found) {
      if (found.bodyHash !== bodyHash) return { state: "mismatch" };
      return found.outcome ? { state: "completed", outcome: found.outcome } : { state: "running" };
    }
    this.#byKey.delete(keyId);
    this.#byKey.set(keyId, its);
    its.running.set(idempotencyKeyHash, {
      bodyHash,
      request: requestId,
      owner,
      since: this.#now(),
      outcome: undefined,
    });
    this.#size++;
    if (its.size > MAX_PER_KEY) this.#evict(keyId, its, () => its.evictOldest());
    if (this.#size > MAX_TOTAL) {
      const [silent, oldest] = this.#byKey.entries().next().value!;
      this.#evict(silent, oldest, () => oldest.evictOldest());
    }
    return { state: "new" };
  }

  complete(
    {
      keyId,
      idempotencyKeyHash,
      requestId,
    }: Pick<IdempotencyClaim, "keyId" | "idempotencyKeyHash" | "requestId">,
    outcome: IdempotencyOutcome | undefined,
  ): void {
    const its = this.#byKey.get(keyId);
    const entry = its?.running.get(idempotencyKeyHash);
    // If the entry was dropped in the meantime, another request may own it now.
    if (!its || entry?.request !== requestId) return;
    if (outcome) its.finish(idempotencyKeyHash, entry, outcome);
    else this.#evict(keyId, its, () => its.remove(idempotencyKeyHash));
  }

  ownerExited(owner: object): void {
    for (const its of this.#byKey.values())
      for (const [name, entry] of its.running)
        if (entry.owner === owner)
          its.finish(name, entry, {
            requestId: entry.request,
            status: 500,
            usage: {},
            costNano: null,
          });
  }

  #findLive(who: string, its: KeyClaims, name: string): ClaimEntry | undefined {
    const entry = its.find(name);
    if (!entry?.outcome || this.#now() - entry.since < TTL_MS) return entry;
    this.#evict(who, its, () => its.remove(name));
    return undefined;
  }

  /** Removes an entry and updates the size. */
  #evict(who: string, its: KeyClaims, forget: () => void): void {
    const before = its.size;
    forget();
    this.#size -= before - its.size;
    if (its.size === 0 && this.#byKey.get(who) === its) this.#byKey.delete(who);
  }
}
