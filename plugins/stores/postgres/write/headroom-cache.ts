// Caches meters that recently had much more available than a batch needs. A batch that takes little
// from each such meter skips the check without locks. The check under locks still applies, and a
// rejected batch is retried with both checks.
import type { MeterDelta } from "../rows/batch-plan.ts";

/**
 * How long headroom is assumed, in milliseconds. Other gateways can use only a small amount in that
 * time.
 */
const CACHE_TTL_MS = 250;
/** Number of batches of the same size that must fit. */
const HEADROOM_FACTOR = 64n;
/** Maximum number of meters in the cache. */
const MAX_METERS = 10_000;

export class HeadroomCache {
  readonly #headroom = new Map<string, { readonly left: bigint; readonly until: number }>();
  #connectionId = 0;

  /**
   * Returns whether the batch fits many times over. After a new connection (`made`), the cache is
   * cleared, because the connection may lead to another database.
   */
  hasHeadroom(sums: readonly MeterDelta[], made: number, now = performance.now()): boolean {
    if (made !== this.#connectionId) this.clear();
    this.#connectionId = made;
    return sums.every(({ id, required }) => {
      const room = this.#headroom.get(id);
      return (
        room !== undefined && now < room.until && (required ?? 0n) * HEADROOM_FACTOR <= room.left
      );
    });
  }

  /**
   * @param states Meter states from before the batch, as returned by the admission function.
   */
  update(sums: readonly MeterDelta[], states: readonly string[], now = performance.now()): void {
    if (this.#headroom.size + sums.length > MAX_METERS) this.clear();
    sums.forEach((sum, i) => {
      // A batch that only returns amounts to a meter contains no limit.
      const left =
        sum.max === null ? this.#headroom.get(sum.id)?.left : remainingAfter(sum, states[i]!);
      this.#headroom.set(sum.id, { left: left ?? 0n, until: now + CACHE_TTL_MS });
    });
  }

  /** Clears the cache, because the state of the meters is unknown. */
  clear(): void {
    this.#headroom.clear();
  }
}

/**
 * Returns the amount that is available after the batch. The amount that drains from a rate limit in
 * the meantime is not included.
 */
function remainingAfter({ max, period, take }: MeterDelta, state: string): bigint {
  const [level, held] = state.split(" ", 2).map(BigInt) as [bigint, bigint];
  return max! - take - (period === 0 ? level + held : level / BigInt(period));
}
