// What was refused a moment ago is refused again without asking: calls that flood a budget which is spent cost the database four questions a second.
import type { Reserve, StoreCommand, CommandResult } from "tollgate/plugin";
import { mergeClaims } from "tollgate/store";
import { parseMeterId, type OwnCall, type BatchPlan, type PlanStep } from "../rows/batch-plan.ts";

/** Room that others give back is seen as soon. */
const CACHE_TTL_MS = 250;
/** So many refusals at one limit, each within a moment of the one before, are a flood. Fewer are asked about one by one. */
const FLOOD_DENIALS = 20;
/** Limits that are kept in mind. */
const MAX_LIMITS = 10_000;

interface CachedDenial {
  /** The limit: one that was raised meanwhile may have room. */
  readonly limit: bigint;
  /** The least that did not fit: less may. */
  readonly take: bigint;
  readonly result: Extract<CommandResult, { ok: false }>;
  readonly at: number;
  readonly until: number;
  readonly count: number;
}

export class DenialCache {
  /** By meter. */
  readonly #byMeter = new Map<string, CachedDenial>();
  #connectionId = 0;

  /** `at`: the moment that decided. */
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

  /** Those of a batch that need not be asked about. `made`: by another connection all is, for a call may have been let through unheard. */
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
      // What ends in this batch makes room in it.
      if (c.do === "settle") this.#dropReleased(mine.get(c.attempt)?.row.meterAmounts ?? []);
      if (c.do !== "reserve" || mine.has(c.attempt)) continue;
      const verdict = this.#find(c, at, now);
      if (verdict) refused.set(c.attempt, verdict);
    }
    return refused;
  }

  /** Of several limits the one that is waited for longest, as everywhere. */
  #find({ claims }: Reserve, at: number, now: number): CommandResult | undefined {
    let found: CachedDenial["result"] | undefined;
    for (const { limit, take, meter } of mergeClaims(claims, at, NO_METERS)) {
      const last = this.#byMeter.get(meter.id);
      if (!last || last.count < FLOOD_DENIALS || now >= last.until) continue;
      if (last.limit !== limit || take < last.take) continue;
      // How long more has to wait for a rate is another matter.
      if (parseMeterId(meter.id).period > 0 && take > last.take) continue;
      const retryAfterMs = Math.max(1, last.result.retryAfterMs - Math.floor(now - last.at));
      if (!found || found.retryAfterMs < retryAfterMs) found = { ...last.result, retryAfterMs };
    }
    return found;
  }

  #dropReleased(taken: readonly (readonly [id: string, amount: bigint])[]): void {
    for (const [id] of taken) this.#byMeter.delete(id);
  }

  /** It has happened. */
  onApplied({ meterDeltas }: BatchPlan): void {
    if (this.#byMeter.size === 0) return;
    for (const { id, released } of meterDeltas) if (released > 0n) this.#byMeter.delete(id);
  }

  /** What has changed is not known. */
  clear(): void {
    this.#byMeter.clear();
  }
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();
