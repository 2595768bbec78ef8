// Verdicts by the book's own formulas: it sees the meters as the gate has seen them, and is told the same calls. What it comes to is written
// nowhere; that was the gate's.
import type { Verdict } from "tollgate/plugin";
import {
  createBook,
  newMeter,
  type BookReserve,
  type BookSettle,
  type Journal,
  type OpenCall,
} from "tollgate/store";
import type { Plan } from "./calls.ts";

type Blank = Journal<BookReserve, BookSettle, OpenCall>;

/** Keeps nothing, and knows nothing. */
export const BLANK: Blank = {
  reserve: ({ attempt }, taken) => ({ attempt, taken }),
  settle() {},
  adjust: () => true,
  knows: () => false,
  past: () => undefined,
  progress() {},
  key() {},
  price() {},
  alive() {},
};

/** A meter as the gate says it: level, held, at, max, peak. */
const stated = (id: string, state: string, restored: bigint) => {
  const [level, held, at, max, peak] = state.split(" ") as [string, string, string, string, string];
  const meter = { ...newMeter(id), level: BigInt(level), at: Number(at), max: BigInt(max) };
  meter.held = BigInt(held) - restored;
  return { meter, peak: BigInt(peak) };
};

/** Of each call of the plan, by its attempt, told in the batch's order. `states`: a meter each, in the plan's order. */
export function verdictsOf(
  { sums, steps }: Plan,
  states: readonly string[],
  at: number,
): ReadonlyMap<string, Verdict> {
  const book = createBook(BLANK, () => "");
  sums.forEach(({ id, period, unhold }, i) => {
    const { meter, peak } = stated(id, states[i]!, period === 0 ? unhold : 0n);
    book.load(meter);
    meter.peak = peak;
  });
  for (const { command, taken } of steps)
    if (command.do === "settle") book.restore({ attempt: command.attempt, taken });
  const verdicts = new Map<string, Verdict>();
  for (const { command } of steps) verdicts.set(command.attempt, book.apply(timed(command, at)));
  return verdicts;
}

/** What the rules ask of it, at the moment that counts. */
function timed(command: Plan["steps"][number]["command"], at: number): BookReserve | BookSettle {
  if (command.do === "reserve")
    return { do: "reserve", at, attempt: command.attempt, claims: command.claims };
  const { attempt, state, usage, costNano, outcome } = command;
  return { do: "settle", at, attempt, state, usage, costNano, outcome };
}
