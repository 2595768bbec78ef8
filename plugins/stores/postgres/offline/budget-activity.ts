// The budgets that this node's calls draw on, and how much of each: what it may need soon of those that are hot.
import { isCalendarPeriod } from "tollgate/store";
import { parseMeterId, type MeterDelta } from "../rows/batch-plan.ts";

/** A budget that calls of this node have claimed. */
export interface BudgetUse {
  max: bigint;
  lastUsedAt: number;
  /** It is not asked for before. */
  nextRequestAt: number;
  /** Since the last look. */
  recentTake: bigint;
  recentCalls: number;
  /** As of the last look, what it comes to in about ten looks. */
  expectedUse: bigint;
  expectedCalls: number;
}

/** Meters that are kept in mind. */
const MAX_METERS = 10_000;
/** Fewer calls in ten looks are no hot budget's. */
const MIN_CALLS = 10;
/** Meters that are told of at once. */
const METERS_PER_REPORT = 100;

export class BudgetActivity {
  readonly all = new Map<string, BudgetUse>();

  record(sums: readonly MeterDelta[]): void {
    const at = performance.now();
    for (const { id, max, take, calls } of sums) {
      if (max === null || !isCalendarPeriod(parseMeterId(id).per)) continue;
      const known = this.all.get(id);
      if (known) {
        known.max = max;
        known.lastUsedAt = at;
        known.recentTake += take;
        known.recentCalls += calls;
      } else if (this.all.size < MAX_METERS)
        this.all.set(id, {
          max,
          lastUsedAt: at,
          nextRequestAt: at,
          recentTake: take,
          recentCalls: calls,
          expectedUse: 0n,
          expectedCalls: 0,
        });
    }
  }

  /** With each sign of life: what was used of late weighs more. Says which are busy, the busiest first. */
  takeHot(): readonly (readonly [id: string, of: BudgetUse])[] {
    for (const of of this.all.values()) {
      of.expectedUse += of.recentTake - of.expectedUse / 10n;
      of.expectedCalls += of.recentCalls - of.expectedCalls / 10;
      of.recentTake = 0n;
      of.recentCalls = 0;
    }
    return [...this.all]
      .filter(([, { expectedCalls }]) => expectedCalls >= MIN_CALLS)
      .toSorted(([, a], [, b]) => b.expectedCalls - a.expectedCalls)
      .slice(0, METERS_PER_REPORT);
  }

  dropIdle(before: number): readonly string[] {
    const gone = [...this.all]
      .filter(([, { lastUsedAt }]) => lastUsedAt < before)
      .map(([id]) => id);
    for (const id of gone) this.all.delete(id);
    return gone;
  }
}
