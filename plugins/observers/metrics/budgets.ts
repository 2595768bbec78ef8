// Budgets as the last call that drew on them found them. Of many those are told that are nearest to their end.
import type { LimitState } from "tollgate/plugin";

/** Kept. Beyond this the one that was seen longest ago is forgotten. */
const MOST_KEPT = 2_000;
/** Told. */
const MOST_TOLD = 100;

export interface Budget {
  readonly scope: string;
  readonly per: string;
  readonly max: bigint;
  readonly used: bigint;
  readonly resetsAt: number;
}

export class Budgets {
  readonly #kept = new Map<string, LimitState>();

  saw(limit: LimitState): void {
    if (limit.unit !== "nano_usd") return;
    const key = `${limit.scope}\n${limit.per}`;
    this.#kept.delete(key);
    this.#kept.set(key, limit);
    if (this.#kept.size > MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
  }

  /** The nearest to their end first. A window that is over has used nothing. */
  nearest(now: number, most = MOST_TOLD): readonly Budget[] {
    const all = Array.from(this.#kept.values(), ({ scope, per, max, left, resetsAt }): Budget => {
      const limit = BigInt(max);
      const used = resetsAt <= now ? 0n : limit - BigInt(left);
      return { scope, per, max: limit, used, resetsAt };
    });
    const share = ({ max, used }: Budget) => (max > 0n ? Number(used) / Number(max) : 1);
    return all.toSorted((a, b) => share(b) - share(a)).slice(0, most);
  }
}
