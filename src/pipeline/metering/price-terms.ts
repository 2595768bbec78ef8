import type { PricingContext } from "../../money/price.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import type { Candidate } from "../../plugin/call.ts";
import type { Exchange } from "../../plugin/exchange.ts";

/** What decides a price beside the counts and the time: what the client asked for, and where it is served. */
export type PriceTerms = Pick<PricingContext, "tier" | "size" | "quality" | "pricingAttributes">;

export function priceTermsOf(
  of: Pick<Candidate, "policy">,
  { tier, size, quality, pricingAttributes }: RequestFacts,
): PriceTerms {
  const { region } = of.policy;
  // Of several regions it is not known which one it will be.
  return {
    tier,
    size,
    quality,
    pricingAttributes: { ...(region?.length === 1 && { region: region[0] }), ...pricingAttributes },
  };
}

/** Whose habits count for a call's expected size: this key's with this model. */
export const outputHistoryKey = (x: Pick<Exchange, "identity">, model: string): string =>
  `${x.identity?.id}\n${model}`;
