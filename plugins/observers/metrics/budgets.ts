// Budget states as of the last call that used each budget. If there are many, only those nearest to
// exhaustion are reported.
import type { LimitState } from "tollgate/plugin";

/** Maximum number of budgets in memory. Beyond it, the least recently used one is dropped. */
const MAX_TRACKED = 2_000;
/** Maximum number of budgets in a report. */
const MAX_REPORTED = 100;

export interface BudgetSample {
  readonly scope: string;
  readonly per: string;
  readonly max: bigint;
  readonly used: bigint;
  readonly resetsAt: number;
}

export class BudgetTracker {
  readonly #limits = new Map<string, LimitState>();

  observe(limit: LimitState): void {
    if (limit.unit !== "nano_usd") return;
    const key = `${limit.scope}\n${limit.per}`;
    this.#limits.delete(key);
    this.#limits.set(key, limit);
    if (this.#limits.size > MAX_TRACKED) this.#limits.delete(this.#limits.keys().next().value!);
  }

  /**
   * Returns the budgets nearest to exhaustion first. A budget whose window has ended counts as
   * unused.
   */
  mostUsed(now: number, most = MAX_REPORTED): readonly BudgetSample[] {
    const all = Array.from(
      this.#limits.values(),
      ({ scope, per, max, remaining, resetsAt }): BudgetSample => {
        const limit = BigInt(max);
        const used = resetsAt <= now ? 0n : limit - BigInt(remaining);
        return { scope, per, max: limit, used, resetsAt };
      },
    );
    const share = ({ max, used }: BudgetSample) => (max > 0n ? Number(used) / Number(max) : 1);
    return all.toSorted((a, b) => share(b) - share(a)).slice(0, most);
  }
}
