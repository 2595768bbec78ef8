// Meters that had plenty of room a moment ago. A batch that takes a little of each is not looked at before it is written: the guard decides, as ever, and
// what it refuses is tried again with a look.
import type { Sum } from "./calls.ts";

/** What others take meanwhile is little beside it. */
const MOMENT_MS = 250;
/** So many batches of its size fit. */
const PLENTY = 64n;
/** Meters that are kept in mind. */
const MOST = 10_000;

export class Ample {
  readonly #room = new Map<string, { readonly left: bigint; readonly until: number }>();
  #made = 0;

  /** Whether all of it fits many times. `made`: another connection may be one to another database. */
  of(sums: readonly Sum[], made: number, now = performance.now()): boolean {
    if (made !== this.#made) this.clear();
    this.#made = made;
    return sums.every(({ id, need }) => {
      const room = this.#room.get(id);
      return room !== undefined && now < room.until && (need ?? 0n) * PLENTY <= room.left;
    });
  }

  /** `states`: as the gate has said them, from before the batch. */
  heard(sums: readonly Sum[], states: readonly string[], now = performance.now()): void {
    if (this.#room.size + sums.length > MOST) this.clear();
    sums.forEach((sum, i) => {
      // A batch that gives to it alone says no limit.
      const left = sum.max === null ? this.#room.get(sum.id)?.left : leftOf(sum, states[i]!);
      this.#room.set(sum.id, { left: left ?? 0n, until: now + MOMENT_MS });
    });
  }

  /** What has changed is not known. */
  clear(): void {
    this.#room.clear();
  }
}

/** After the batch. What a rate gets back meanwhile is not counted. */
function leftOf({ max, period, take }: Sum, state: string): bigint {
  const [level, held] = state.split(" ", 2).map(BigInt) as [bigint, bigint];
  return max! - take - (period === 0 ? level + held : level / BigInt(period));
}
