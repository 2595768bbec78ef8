// Verdicts by the book's own formulas: it sees the meters as the gate has seen them, and is told the same calls. What it comes to is written
// nowhere; that was the gate's.
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

/** Keeps nothing, and knows nothing. */
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

/** A meter as the gate says it: level, held, at, max, peak. */
const parseMeterState = (id: string, state: string, restored: bigint) => {
  const [level, held, at, max, peak] = state.split(" ") as [string, string, string, string, string];
  const meter = { ...createMeter(id), level: BigInt(level), at: Number(at), max: BigInt(max) };
  meter.reserved = BigInt(held) - restored;
  return { meter, peak: BigInt(peak) };
};

/** Of each call of the plan, by its attempt, told in the batch's order. `states`: a meter each, in the plan's order. */
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

/** What the rules ask of it, at the moment that counts. */
function withTime(
  command: BatchPlan["steps"][number]["command"],
  at: number,
): ReserveInput | SettleInput {
  if (command.do === "reserve")
    return { do: "reserve", at, attempt: command.attempt, claims: command.claims };
  const { attempt, state, usage, costNano, outcome } = command;
  return { do: "settle", at, attempt, state, usage, costNano, outcome };
}
