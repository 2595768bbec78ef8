// What so much would cost at a model's price, before anything is asked of it.
import type { EffectivePolicy, ModelInfo } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import { calculateBill, isExact } from "./price.ts";

/** Nano-dollars at the time `at`; null where the price is not known, or has no line for a count. */
export function quoteCost(
  { info, policy }: { readonly info: ModelInfo; readonly policy: EffectivePolicy },
  usage: Usage,
  at: number,
): bigint | null {
  const { region } = policy;
  // Of several regions it is not known which one it will be.
  const facts = region?.length === 1 ? { region: region[0] } : {};
  const bill = info.price && calculateBill(usage, info.price, { at, pricingAttributes: facts });
  return bill && isExact(bill) ? bill.nano : null;
}
