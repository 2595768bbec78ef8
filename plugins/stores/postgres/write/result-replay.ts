// Computes results with the formulas of the ledger rules. The rules receive the meter states that
// the admission function returned, and the same calls. Nothing is written, because the admission
// function has already written all rows.
import type { CommandResult } from "tollgate/plugin";
import {
  createLedgerRules,
  createMeter,
  type ReserveInput,
  type SettleInput,
  type LedgerJournal,
  type OpenCall,
} from "tollgate/store";
import type { BatchPlan } from "../rows/batch-plan.ts";

type EmptyJournal = LedgerJournal<ReserveInput, SettleInput, OpenCall>;

/** A journal that stores nothing and contains nothing. */
export const EMPTY_JOURNAL: EmptyJournal = {
  reserve: ({ attempt }, taken) => ({ attempt, meterAmounts: taken }),
  settle() {},
  adjust: () => true,
  hasReserve: () => false,
  closedCall: () => undefined,
  progress() {},
  putKey() {},
  putPrice() {},
  recordHeartbeat() {},
};

/** Parses a meter state from the admission function: level, reserved, at, max, peak. */
const parseMeterState = (id: string, state: string, restored: bigint) => {
  const [level, held, at, max, peak] = state.split(" ") as [string, string, string, string, string];
  const meter = { ...createMeter(id), level: BigInt(level), at: Number(at), max: BigInt(max) };
  meter.reserved = BigInt(held) - restored;
  return { meter, peak: BigInt(peak) };
};

/**
 * Returns the result of each call in the plan, by attempt. Calls are applied in batch order.
 * @param states A state per meter, in plan order.
 */
export function replayResults(
  { meterDeltas, steps }: BatchPlan,
  states: readonly string[],
  at: number,
): ReadonlyMap<string, CommandResult> {
  const book = createLedgerRules(EMPTY_JOURNAL, () => "");
  meterDeltas.forEach(({ id, period, released }, i) => {
    const { meter, peak } = parseMeterState(id, states[i]!, period === 0 ? released : 0n);
    book.loadMeter(meter);
    meter.peak = peak;
  });
  for (const { command, meterAmounts } of steps)
    if (command.do === "settle") book.restoreCall({ attempt: command.attempt, meterAmounts });
  const verdicts = new Map<string, CommandResult>();
  for (const { command } of steps) verdicts.set(command.attempt, book.apply(withTime(command, at)));
  return verdicts;
}

/** Returns a command for the rules, at the given time. */
function withTime(
  command: BatchPlan["steps"][number]["command"],
  at: number,
): ReserveInput | SettleInput {
  if (command.do === "reserve")
    return { do: "reserve", at, attempt: command.attempt, claims: command.claims };
  const { attempt, state, usage, costNano, outcome } = command;
  return { do: "settle", at, attempt, state, usage, costNano, outcome };
}
