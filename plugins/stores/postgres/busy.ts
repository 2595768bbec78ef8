// The budgets that this node's calls draw on, and how much of each: what it may need soon of those that are hot.
import { isCalendar } from "tollgate/store";
import { kindOf, type Sum } from "./calls.ts";

/** A budget that calls of this node have claimed. */
export interface Touched {
  max: bigint;
  at: number;
  /** It is not asked for before. */
  again: number;
  /** Since the last look. */
  take: bigint;
  times: number;
  /** As of the last look, what it comes to in about ten looks. */
  want: bigint;
  calls: number;
}

/** Meters that are kept in mind. */
const MOST = 10_000;
/** Fewer calls in ten looks are no hot budget's. */
const LEAST = 10;
/** Meters that are told of at once. */
const AT_ONCE = 100;

export class Busy {
  readonly all = new Map<string, Touched>();

  touch(sums: readonly Sum[]): void {
    const at = performance.now();
    for (const { id, max, take, times } of sums) {
      if (max === null || !isCalendar(kindOf(id).per)) continue;
      const known = this.all.get(id);
      if (known) {
        Object.assign(known, { max, at });
        known.take += take;
        known.times += times;
      } else if (this.all.size < MOST)
        this.all.set(id, { max, at, again: at, take, times, want: 0n, calls: 0 });
    }
  }

  /** With each sign of life: what was used of late weighs more. Says which are busy, the busiest first. */
  look(): readonly (readonly [id: string, of: Touched])[] {
    for (const of of this.all.values()) {
      of.want += of.take - of.want / 10n;
      of.calls += of.times - of.calls / 10;
      of.take = 0n;
      of.times = 0;
    }
    return [...this.all]
      .filter(([, { calls }]) => calls >= LEAST)
      .toSorted(([, a], [, b]) => b.calls - a.calls)
      .slice(0, AT_ONCE);
  }

  forget(before: number): readonly string[] {
    const gone = [...this.all].filter(([, { at }]) => at < before).map(([id]) => id);
    for (const id of gone) this.all.delete(id);
    return gone;
  }
}
