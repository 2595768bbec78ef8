// Plans a batch for the fast path: one delta per meter, and one row per entry. A batch with a
// repeated command, a late settle, an adjustment, a call of a job, or a key is not plain. It takes
// the slow path, which first reads the current rows from the database.
import type { StoreCommand, Reserve, Settle } from "tollgate/plugin";
import {
  createMeter,
  mergeClaims,
  reserveRow,
  settleRow,
  toMeterAmount,
  meteredUsage,
  type LedgerRow,
  type MeterAmount,
} from "tollgate/store";
import { compareBytes } from "../connection/array-literal.ts";
import type { PlannedRow, TermsCache } from "./call-terms.ts";

type Timed<C> = C & { readonly at: number };

/** A call that this node opened. The entry is kept until the call ends. */
export interface OwnCall {
  readonly row: LedgerRow;
}

/** The amounts that a batch takes from a meter and returns to it. */
export interface MeterDelta {
  readonly id: string;
  /** The claimed limit. null if the batch only returns amounts. */
  max: bigint | null;
  /** Period of a rate limit, in milliseconds. 0 for other limits. */
  readonly period: number;
  /** Member of a group: idle time of a window in total, or -1 for another meter. 0: no member. */
  readonly idle: number;
  take: bigint;
  /** Number of calls that take the amount. */
  calls: number;
  released: bigint;
  used: bigint;
  /** Highest amount that must fit at any point of the batch. null if no amount must fit. */
  required: bigint | null;
  /**
   * Net change at the current point of the batch. For a rate limit, returned amounts are not
   * included.
   */
  running: bigint;
}

/** A call that begins or ends, with the amounts of its meters. */
export interface PlanStep {
  readonly command: Timed<Reserve> | Timed<Settle>;
  readonly meterAmounts: readonly MeterAmount[];
}

/** Whether the member of a meter is known to be present in its group. */
interface MembershipCheck {
  isPresent(meterId: string): boolean;
}

/** A batch for the fast path. */
export interface BatchPlan {
  readonly meterDeltas: readonly MeterDelta[];
  /** Reserves and settles, in order. */
  readonly steps: readonly PlanStep[];
  readonly closedAttempts: readonly string[];
  readonly progress: readonly Extract<StoreCommand, { do: "progress" }>[];
  readonly rows: readonly PlannedRow[];
  /** Rows of opened calls, which are kept in memory after the batch is written. */
  readonly openedRows: readonly LedgerRow[];
}

const RATE_PERIODS_MS: { readonly [per: string]: number } = { minute: 60_000, hour: 3_600_000 };

/** Parses the ID of a meter, `unit|per|start|scope`. */
export function parseMeterId(id: string): {
  unit: Reserve["claims"][number]["unit"];
  per: string;
  period: number;
} {
  const [unit, per] = id.split("|", 2) as [Reserve["claims"][number]["unit"], string];
  return { unit, per, period: RATE_PERIODS_MS[per] ?? 0 };
}

/** Whether a meter belongs to a member of a group. */
export const isMemberMeter = (id: string): boolean =>
  id.includes("|~") && createMeter(id).member !== undefined;

/** Returns the value of `MeterDelta.idle`. */
function idleOf(id: string): number {
  const member = id.includes("|~") ? createMeter(id).member : undefined;
  return member === undefined ? 0 : parseMeterId(id).per === "total" ? member.idleMs : -1;
}

/** Returns whether all reserves and settles of a batch have the same time. */
export function haveSameTime(batch: readonly StoreCommand[]): boolean {
  const [first, ...others] = batch.filter((c) => c.do === "reserve" || c.do === "settle");
  return others.every(({ at }) => at === first!.at);
}

/**
 * Plans a batch. Returns undefined if the batch is not plain.
 * @param now Returns the time that decides which window a claim belongs to.
 */
export function planBatch(
  batch: readonly StoreCommand[],
  mine: ReadonlyMap<string, OwnCall>,
  instance: string,
  now: (at: number) => number,
  terms: TermsCache,
  members: MembershipCheck = NO_MEMBERS,
): BatchPlan | undefined {
  terms.beginBatch();
  const sums = new Map<string, MeterDelta>();
  const steps: PlanStep[] = [];
  const closed: string[] = [];
  const progress: BatchPlan["progress"][number][] = [];
  const rows: PlannedRow[] = [];
  const begun: LedgerRow[] = [];
  const seen = new Set<string>();
  const sum = (id: string): MeterDelta => {
    let found = sums.get(id);
    if (!found) {
      const { period } = parseMeterId(id);
      sums.set(id, (found = createDelta(id, period, idleOf(id))));
    }
    return found;
  };
  for (const c of batch) {
    if (c.do === "heartbeat") continue;
    if (c.do !== "reserve" && c.do !== "settle" && c.do !== "progress") return undefined;
    const call = mine.get(c.attempt);
    if (c.do === "progress") {
      if (call && !seen.has(c.attempt)) progress.push(c);
      else if (seen.has(c.attempt)) return undefined;
      continue;
    }
    if (seen.has(c.attempt) || (c.do === "settle") !== (call !== undefined)) return undefined;
    // The calls of a job share amounts, which only the ledger rules know.
    if (c.do === "reserve" ? c.job : call?.row.job !== undefined) return undefined;
    seen.add(c.attempt);
    if (c.do === "reserve") {
      const claims = mergeClaims(c.claims, now(c.at), NO_METERS);
      const taken = claims.map(toMeterAmount);
      for (let i = 0; i < claims.length; i++) {
        const { limit, meter, maxMembers } = claims[i]!;
        // Only the ledger rules count the members of a group.
        if (maxMembers !== undefined && !members.isPresent(meter.id)) return undefined;
        const of = sum(meter.id);
        if (of.max !== null && of.max !== limit) return undefined;
        of.max = limit;
        addTake(of, taken[i]![1], claims[i]!.countsOnly === true);
      }
      const row = reserveRow(c, instance, taken);
      steps.push({ command: c, meterAmounts: taken });
      begun.push(row);
      rows.push(terms.planRow(row, row.at));
    } else {
      const { row } = call!;
      for (const [id, amount] of row.meterAmounts) {
        const { unit, per } = parseMeterId(id);
        addRelease(sum(id), amount, per === "open" ? 0n : meteredUsage(unit, amount, c));
      }
      steps.push({ command: c, meterAmounts: row.meterAmounts });
      closed.push(c.attempt);
      rows.push(terms.planRow(settleRow(row, c, instance), row.at));
    }
  }
  return {
    meterDeltas: [...sums.values()].sort(compareById),
    steps,
    closedAttempts: closed,
    progress,
    rows,
    openedRows: begun,
  };
}

const createDelta = (id: string, period: number, idle: number): MeterDelta => ({
  id,
  max: null,
  period,
  idle,
  take: 0n,
  calls: 0,
  released: 0n,
  used: 0n,
  required: null,
  running: 0n,
});

function addTake(of: MeterDelta, amount: bigint, countsOnly: boolean): void {
  of.take += amount;
  of.calls++;
  of.running += amount;
  if (amount > 0n && !countsOnly && (of.required === null || of.running > of.required))
    of.required = of.running;
}

function addRelease(of: MeterDelta, amount: bigint, used: bigint): void {
  of.released += amount;
  of.used += used;
  const more = used - amount;
  // The level of a rate limit cannot drop below empty. The part of a returned amount that counts
  // depends on the level, which only the database knows.
  if (of.period === 0 || more > 0n) of.running += more;
}

const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();
const NO_MEMBERS: MembershipCheck = { isPresent: () => false };
/** Compares meters in locking order. */
const compareById = (a: MeterDelta, b: MeterDelta): number => compareBytes(a.id, b.id);
