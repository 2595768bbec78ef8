// Tracks the amount of each budget that this node's calls use, to estimate the leases that the node
// needs on hot budgets.
import { isCalendarPeriod } from "tollgate/store";
import { isMemberMeter, parseMeterId, type MeterDelta } from "../rows/batch-plan.ts";

/** Usage of one budget by the calls of this node. */
export interface BudgetUse {
  max: bigint;
  lastUsedAt: number;
  /** Earliest time at which a lease is requested again. */
  nextRequestAt: number;
  /** Amount since the last heartbeat. */
  recentTake: bigint;
  recentCalls: number;
  /** Expected use in about 10 heartbeat intervals, as of the last heartbeat. */
  expectedUse: bigint;
  expectedCalls: number;
}

/** Maximum number of tracked meters. */
const MAX_METERS = 10_000;
/** Minimum number of calls in about 10 heartbeat intervals for a hot budget. */
const MIN_CALLS = 10;
/** Maximum number of meters per report. */
const METERS_PER_REPORT = 100;

export class BudgetActivity {
  readonly all = new Map<string, BudgetUse>();

  record(sums: readonly MeterDelta[]): void {
    const at = performance.now();
    for (const { id, max, take, calls } of sums) {
      // Members of groups are counted exactly, and there are too many of them for leases.
      if (max === null || !isCalendarPeriod(parseMeterId(id).per) || isMemberMeter(id)) continue;
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

  /**
   * Updates the estimates. Recent usage has more weight. Called with each heartbeat. Returns the
   * busy budgets, busiest first.
   */
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
