// Prices a typical request: a comparable amount with the lines of its bill.
import type { Price } from "../model/facts.ts";
import type { Unit, Usage } from "../model/usage.ts";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import { roundHalfEven } from "./decimal.ts";
import { calculateBill, isExact } from "./price.ts";

export interface PricedExample {
  /** Description for people: "10,000 tokens in, 1,000 out". */
  readonly description: string;
  readonly usage: Usage;
  /** Cost in nano-dollars. `null`: the price is not known. */
  readonly nano: bigint | null;
  readonly lines: readonly { readonly unit: Unit; readonly count: number; readonly nano: bigint }[];
}

/** Computes the example. `at`: the time for which the price is taken, in Unix milliseconds. */
export function createPricedExample(
  operationSpec: OperationSpec,
  price: Price | undefined,
  at: number,
): PricedExample {
  const [first, ...others] = operationSpec.priceExamples;
  for (const { description, usage } of price ? [first, ...others] : []) {
    const bill = calculateBill(usage, price!, { at });
    if (!bill || !isExact(bill)) continue;
    const lines = bill.lines.map(({ unit, count, nano }) => ({
      unit,
      count,
      nano: roundHalfEven(nano),
    }));
    return { description, usage, nano: bill.nano, lines };
  }
  return { ...first, nano: null, lines: [] };
}
