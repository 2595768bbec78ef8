// Meters that had plenty of room a moment ago. A batch that takes a little of each is not looked at before it is written: the guard decides, as ever, and
// what it refuses is tried again with a look.
import type { MeterDelta } from "../rows/batch-plan.ts";

/** What others take meanwhile is little beside it. */
const CACHE_TTL_MS = 250;
/** So many batches of its size fit. */
const HEADROOM_FACTOR = 64n;
/** Meters that are kept in mind. */
const MAX_METERS = 10_000;

export class HeadroomCache {
  readonly #headroom = new Map<string, { readonly left: bigint; readonly until: number }>();
  #connectionId = 0;

  /** Whether all of it fits many times. `made`: another connection may be one to another database. */
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

  /** `states`: as the gate has said them, from before the batch. */
  update(sums: readonly MeterDelta[], states: readonly string[], now = performance.now()): void {
    if (this.#headroom.size + sums.length > MAX_METERS) this.clear();
    sums.forEach((sum, i) => {
      // A batch that gives to it alone says no limit.
      const left =
        sum.max === null ? this.#headroom.get(sum.id)?.left : remainingAfter(sum, states[i]!);
      this.#headroom.set(sum.id, { left: left ?? 0n, until: now + CACHE_TTL_MS });
    });
  }

  /** What has changed is not known. */
  clear(): void {
    this.#headroom.clear();
  }
}

/** After the batch. What a rate gets back meanwhile is not counted. */
function remainingAfter({ max, period, take }: MeterDelta, state: string): bigint {
  const [level, held] = state.split(" ", 2).map(BigInt) as [bigint, bigint];
  return max! - take - (period === 0 ? level + held : level / BigInt(period));
}
