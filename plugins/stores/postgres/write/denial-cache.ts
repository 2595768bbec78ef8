// Caches denials, so that repeated claims are denied without a query. A flood of calls on an
// exhausted budget then costs the database 4 queries per second.
import type { Reserve, StoreCommand, CommandResult } from "tollgate/plugin";
import { mergeClaims } from "tollgate/store";
import { parseMeterId, type OwnCall, type BatchPlan, type PlanStep } from "../rows/batch-plan.ts";

/** How long a denial is cached, in milliseconds. Freed budget becomes visible after this time. */
const CACHE_TTL_MS = 250;
/**
 * Number of denials in quick succession that count as a flood. Below this number, every claim is
 * submitted.
 */
const FLOOD_DENIALS = 20;
/** Maximum number of cached limits. */
const MAX_LIMITS = 10_000;

interface CachedDenial {
  /** The limit when the call was denied. If it has changed since, the denial does not apply. */
  readonly limit: bigint;
  /** The smallest amount that was denied. Smaller amounts may fit. */
  readonly take: bigint;
  readonly result: Extract<CommandResult, { ok: false }>;
  readonly at: number;
  readonly until: number;
  readonly count: number;
}

export class DenialCache {
  /** Denials by meter ID. */
  readonly #byMeter = new Map<string, CachedDenial>();
  #connectionId = 0;

  /**
   * @param at Time at which it was evaluated.
   */
  add({ command }: PlanStep, verdict: CommandResult, at: number, now = performance.now()): void {
    if (verdict.ok || command.do !== "reserve") return;
    const { denied, retryAfterMs } = verdict;
    for (const { scope, unit, per, limit, take, meter } of mergeClaims(
      command.claims,
      at,
      NO_METERS,
    )) {
      if (scope !== denied.scope || unit !== denied.unit || per !== denied.per) continue;
      const last = this.#byMeter.get(meter.id);
      const goesOn = last?.limit === limit && now < last.until + CACHE_TTL_MS;
      const many = goesOn ? last.count + 1 : 1;
      const until = now + Math.min(CACHE_TTL_MS, retryAfterMs);
      if (this.#byMeter.size >= MAX_LIMITS) this.#byMeter.clear();
      this.#byMeter.set(
        meter.id,
        goesOn && now < last.until && last.take <= take
          ? { ...last, count: many }
          : { limit, take, result: verdict, at: now, until, count: many },
      );
    }
  }

  /**
   * Returns the cached denials of a batch. After a new connection (`made`), the cache is cleared
   * before, because a call may have been accepted without a result for this node.
   */
  denyFromCache(
    batch: readonly StoreCommand[],
    mine: ReadonlyMap<string, OwnCall>,
    { made, at, now = performance.now() }: { made: number; at: number; now?: number },
  ): Map<string, CommandResult> {
    const refused = new Map<string, CommandResult>();
    if (made !== this.#connectionId) this.#byMeter.clear();
    this.#connectionId = made;
    if (this.#byMeter.size === 0) return refused;
    for (const c of batch) {
      // A settle in this batch frees room for later calls.
      if (c.do === "settle") this.#dropReleased(mine.get(c.attempt)?.row.meterAmounts ?? []);
      if (c.do !== "reserve" || mine.has(c.attempt)) continue;
      const verdict = this.#find(c, at, now);
      if (verdict) refused.set(c.attempt, verdict);
    }
    return refused;
  }

  /**
   * Finds the cached denial of a reserve. If several limits deny the reserve, the denial with the
   * longest wait is returned, as in all stores.
   */
  #find({ claims }: Reserve, at: number, now: number): CommandResult | undefined {
    let found: CachedDenial["result"] | undefined;
    for (const { limit, take, meter } of mergeClaims(claims, at, NO_METERS)) {
      const last = this.#byMeter.get(meter.id);
      if (!last || last.count < FLOOD_DENIALS || now >= last.until) continue;
      if (last.limit !== limit || take < last.take) continue;
      // For a rate limit, a larger amount has a longer wait.
      if (parseMeterId(meter.id).period > 0 && take > last.take) continue;
      const retryAfterMs = Math.max(1, last.result.retryAfterMs - Math.floor(now - last.at));
      if (!found || found.retryAfterMs < retryAfterMs) found = { ...last.result, retryAfterMs };
    }
    return found;
  }

  #dropReleased(taken: readonly (readonly [id: string, amount: bigint])[]): void {
    for (const [id] of taken) this.#byMeter.delete(id);
  }

  /** Drops denials after a batch was applied that freed room. */
  onApplied({ meterDeltas }: BatchPlan): void {
    if (this.#byMeter.size === 0) return;
    for (const { id, released } of meterDeltas) if (released > 0n) this.#byMeter.delete(id);
  }

  /** Clears the cache, because the state of the limits is unknown. */
  clear(): void {
    this.#byMeter.clear();
  }
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();
