// Budgets as the last call that drew on them found them. Of many those are told that are nearest to their end.
import type { LimitState } from "tollgate/plugin";

/** Kept. Beyond this the one that was seen longest ago is forgotten. */
const MAX_TRACKED = 2_000;
/** Told. */
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

  /** The nearest to their end first. A window that is over has used nothing. */
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
