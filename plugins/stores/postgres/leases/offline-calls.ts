// Accepts a new call in offline mode if this node has a lease on each budget that the call uses,
// and on at least one budget. Budgets are not exceeded, because leases were deducted from them
// before. Each node enforces its share of rate and concurrency limits.
import type { StoreCommand, CommandResult } from "tollgate/plugin";
import { mergeClaims, createLedgerRules, isCalendarPeriod } from "tollgate/store";
import {
  createNotNowFault,
  type OfflineCalls,
  type OfflineSettings,
} from "../offline/offline-mode.ts";
import { parseMeterId } from "../rows/batch-plan.ts";
import { EMPTY_JOURNAL } from "../write/result-replay.ts";
import type { BudgetLeases } from "./budget-leases.ts";

type Reserve = StoreCommand & { do: "reserve" };
type Claims = Reserve["claims"];

export class LeasedCalls implements OfflineCalls {
  readonly #maxMs: number;
  readonly #budgetLeases: BudgetLeases;
  #rules = createLedgerRules(EMPTY_JOURNAL, () => "");
  #startedAt = 0;

  constructor({ maxMs }: Pick<OfflineSettings, "maxMs">, leases: BudgetLeases) {
    this.#maxMs = maxMs;
    this.#budgetLeases = leases;
  }

  begin(): void {
    this.#startedAt = performance.now();
    this.#rules = createLedgerRules(EMPTY_JOURNAL, () => "");
  }

  isOpen(attempt: string): boolean {
    return this.#rules.openCalls.get(attempt) !== undefined;
  }

  reserve({ attempt, claims }: Reserve, at: number): CommandResult {
    const isOver = performance.now() - this.#startedAt > this.#maxMs;
    const parts = isOver ? undefined : this.#shareOfClaims(claims, at);
    if (!parts) throw createNotNowFault();
    const verdict = this.#rules.apply({ do: "reserve", at, attempt, claims: parts });
    // The budget itself may have more room, but this node's lease is used up.
    if (!verdict.ok && isCalendarPeriod(verdict.denied.per)) throw createNotNowFault();
    return verdict.ok ? { ok: true } : verdict;
  }

  settle(command: StoreCommand & { do: "settle" }, at: number): void {
    this.#rules.apply({ ...command, at });
  }

  commit(): void {
    this.#rules.commit();
  }

  rollback(): void {
    this.#rules.rollback();
  }

  end(): void {
    this.#budgetLeases.markSpentOffline();
  }

  /**
   * Returns the claims, limited to this node's share of each limit. Returns undefined if the node
   * has no share of one of the limits.
   */
  #shareOfClaims(claims: Claims, at: number): Claims | undefined {
    // Whether a group has a place, and what its members have used, is known only to the database.
    if (claims.some(({ maxMembers }) => maxMembers !== undefined)) return undefined;
    const slices = this.#budgetLeases;
    const live = BigInt(slices.liveGateways);
    let budgets = 0;
    const shares: Claims[number][] = [];
    for (const { scope, unit, per, take, limit, meter } of mergeClaims(claims, at, NO_METERS)) {
      let max = limit > 0n && limit < live ? 1n : limit / live;
      if (isCalendarPeriod(parseMeterId(meter.id).per)) {
        const part = slices.leasedAmount(meter.id);
        const here = this.#rules.meters.get(meter.id);
        // The rules never deny a call with amount 0, so it is denied here when the lease is used
        // up.
        if (part === undefined || (here && here.level + here.reserved >= part)) return undefined;
        max = part;
        budgets++;
      }
      shares.push({ scope, unit, per, take, max });
    }
    return budgets > 0 ? shares : undefined;
  }
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();
