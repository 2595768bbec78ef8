// Returns usage and cost per hour or day: ledger sums in the form that a chart needs.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { zoneClock } from "../../lib/time/time-zone.ts";
import { fail } from "../../model/error.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";
import type { LedgerTotal } from "../../plugin/store/store.ts";

/** One line of the chart, with a value for each step. */
export interface UsageCurve {
  /**
   * Empty for calls without a value in this dimension. "(others)" for all lines that are not among
   * the largest.
   */
  readonly name: string;
  readonly calls: readonly number[];
  readonly costNano: readonly bigint[];
  readonly tokens: readonly number[];
}

export interface UsageSeries {
  /** Start of each step, in Unix milliseconds. */
  readonly times: readonly number[];
  /** Largest first, by cost and then by calls. */
  readonly series: readonly UsageCurve[];
  /** Names of keys, by their IDs. */
  readonly names: Readonly<Record<string, string>>;
}

/** Maximum number of steps per chart. */
const MAX_STEPS = 1_500;
const OTHERS_NAME = "(others)";
const HOUR_MS = 3_600_000;

export interface StepRange {
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly step: "hour" | "day";
  readonly zone: string | undefined;
}

/** Returns the start of each step, by its name in the sums. Throws if there are too many steps. */
export function listSteps({ from, to, step, zone }: StepRange): ReadonlyMap<string, number> {
  const clock = zoneClock(zone);
  const end = to ?? wallClock() + 1;
  const begin = from ?? end - (step === "day" ? 30 * 24 : 24) * HOUR_MS;
  const steps = new Map<string, number>();
  // 15 minutes is no longer than any step, and every clock change is at a multiple of it.
  const least = step === "day" ? HOUR_MS : HOUR_MS / 4;
  for (let at = begin; at < end; at += least) {
    const name = clock[step](at);
    if (steps.has(name)) continue;
    if (steps.size === MAX_STEPS)
      fail("invalid", `The time range has more than ${MAX_STEPS} ${step}s. Choose a shorter one.`, {
        code: "bad_input",
        param: "/from",
      });
    steps.set(name, step === "day" ? clock.parseLocalTime(name) : clock.hourStart(at));
  }
  const last = clock[step](end - 1);
  if (end > begin && !steps.has(last)) steps.set(last, clock.hourStart(end - 1));
  return steps;
}

interface MutableCurve {
  readonly name: string;
  readonly calls: number[];
  readonly costNano: bigint[];
  readonly tokens: number[];
}

/**
 * Builds the chart.
 * @param by Dimension of the lines.
 * @param maxCurves Maximum number of lines. The others are merged into one.
 */
export function usageSeries(
  { rows, names }: { rows: readonly LedgerTotal[] } & Pick<UsageSeries, "names">,
  by: string,
  step: "hour" | "day",
  steps: ReadonlyMap<string, number>,
  maxCurves: number,
): UsageSeries {
  const times = [...steps.values()];
  const at = new Map([...steps.keys()].map((name, i) => [name, i]));
  const sizes = new Map<string, { cost: bigint; calls: number }>();
  for (const row of rows) {
    const name = row.by[by] ?? "";
    const size = sizes.get(name) ?? { cost: 0n, calls: 0 };
    size.cost += row.costNano;
    size.calls += row.calls;
    sizes.set(name, size);
  }
  const sorted = [...sizes].sort(([, a], [, b]) =>
    a.cost === b.cost ? b.calls - a.calls : a.cost < b.cost ? 1 : -1,
  );
  const own = new Set(sorted.slice(0, maxCurves).map(([name]) => name));
  const lines = new Map<string, MutableCurve>();
  const order = sorted.map(([name]) => (own.has(name) ? name : OTHERS_NAME));
  for (const name of order) if (!lines.has(name)) lines.set(name, createCurve(name, times.length));
  for (const row of rows) {
    const i = at.get(row.by[step] ?? "");
    const name = row.by[by] ?? "";
    if (i !== undefined) addTotal(lines.get(own.has(name) ? name : OTHERS_NAME)!, i, row);
  }
  return { times, series: [...lines.values()], names };
}

const createCurve = (name: string, steps: number): MutableCurve => ({
  name,
  calls: Array<number>(steps).fill(0),
  costNano: Array<bigint>(steps).fill(0n),
  tokens: Array<number>(steps).fill(0),
});

function addTotal(line: MutableCurve, i: number, { calls, costNano, usage }: LedgerTotal): void {
  line.calls[i]! += calls;
  line.costNano[i]! += costNano;
  line.tokens[i]! += inputTokens(usage) + outputTokens(usage);
}
