// What was used and what it cost, hour by hour or day by day: the sums of the ledger in the form that a plot needs.
import { wallClock } from "../../lib/wall-clock.ts";
import { zoneClock } from "../../lib/zone.ts";
import { fail } from "../../model/error.ts";
import { inputTokens, outputTokens } from "../../model/usage.ts";
import type { Total } from "../../plugin/store.ts";

/** One line of the plot: a value for each step. */
export interface UsageLine {
  /** "" of what has no name by this; "(others)" of all that are not among the largest. */
  readonly name: string;
  readonly calls: readonly number[];
  readonly costNano: readonly bigint[];
  readonly tokens: readonly number[];
}

export interface UsageSeries {
  /** Where each step begins, in Unix milliseconds. */
  readonly times: readonly number[];
  /** The largest first, by cost and then by calls. */
  readonly series: readonly UsageLine[];
  /** What people call keys, by their ids. */
  readonly names: Readonly<Record<string, string>>;
}

/** In one plot. */
const STEPS = 1_500;
const OTHERS = "(others)";
const HOUR = 3_600_000;

export interface Steps {
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly step: "hour" | "day";
  readonly zone: string | undefined;
}

/** Each step's beginning, by its name as sums have it. Fails where there are too many to draw. */
export function stepsOf({ from, to, step, zone }: Steps): ReadonlyMap<string, number> {
  const clock = zoneClock(zone);
  const end = to ?? wallClock() + 1;
  const begin = from ?? end - (step === "day" ? 30 * 24 : 24) * HOUR;
  const steps = new Map<string, number>();
  // A quarter of an hour is no longer than any step, and every change of clocks is at one.
  const least = step === "day" ? HOUR : HOUR / 4;
  for (let at = begin; at < end; at += least) {
    const name = clock[step](at);
    if (steps.has(name)) continue;
    if (steps.size === STEPS)
      fail("invalid", `That is more than ${STEPS} ${step}s. Ask for a shorter time.`, {
        code: "bad_input",
        param: "/from",
      });
    steps.set(name, step === "day" ? clock.moment(name) : clock.hourStart(at));
  }
  const last = clock[step](end - 1);
  if (end > begin && !steps.has(last)) steps.set(last, clock.hourStart(end - 1));
  return steps;
}

interface Line {
  readonly name: string;
  readonly calls: number[];
  readonly costNano: bigint[];
  readonly tokens: number[];
}

/** `by`: what a line is of; `most`: lines, the others as one. */
export function usageSeries(
  { rows, names }: { rows: readonly Total[] } & Pick<UsageSeries, "names">,
  by: string,
  step: "hour" | "day",
  steps: ReadonlyMap<string, number>,
  most: number,
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
  const own = new Set(sorted.slice(0, most).map(([name]) => name));
  const lines = new Map<string, Line>();
  const order = sorted.map(([name]) => (own.has(name) ? name : OTHERS));
  for (const name of order) if (!lines.has(name)) lines.set(name, lineOf(name, times.length));
  for (const row of rows) {
    const i = at.get(row.by[step] ?? "");
    const name = row.by[by] ?? "";
    if (i !== undefined) add(lines.get(own.has(name) ? name : OTHERS)!, i, row);
  }
  return { times, series: [...lines.values()], names };
}

const lineOf = (name: string, steps: number): Line => ({
  name,
  calls: Array<number>(steps).fill(0),
  costNano: Array<bigint>(steps).fill(0n),
  tokens: Array<number>(steps).fill(0),
});

function add(line: Line, i: number, { calls, costNano, usage }: Total): void {
  line.calls[i]! += calls;
  line.costNano[i]! += costNano;
  line.tokens[i]! += inputTokens(usage) + outputTokens(usage);
}
