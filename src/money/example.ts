// What a plain request costs: a figure that people can compare, with the lines of its bill.
import type { Price } from "../model/facts.ts";
import type { Unit, Usage } from "../model/usage.ts";
import type { Work } from "../model/work.ts";
import { halfEven } from "./decimal.ts";
import { billOf, isExact } from "./price.ts";

export interface Example {
  /** In words: "10,000 tokens in, 1,000 out". */
  readonly about: string;
  readonly usage: Usage;
  /** null: the price is not known. */
  readonly nano: bigint | null;
  readonly lines: readonly { readonly unit: Unit; readonly count: number; readonly nano: bigint }[];
}

/** `at`: the moment whose price it is, in Unix milliseconds. */
export function example(work: Work, price: Price | undefined, at: number): Example {
  const [first, ...others] = work.examples;
  for (const { about, usage } of price ? [first, ...others] : []) {
    const bill = billOf(usage, price!, { at });
    if (!bill || !isExact(bill)) continue;
    const lines = bill.lines.map(({ unit, count, nano }) => ({
      unit,
      count,
      nano: halfEven(nano),
    }));
    return { about, usage, nano: bill.nano, lines };
  }
  return { ...first, nano: null, lines: [] };
}
