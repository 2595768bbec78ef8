import type { PricingContext } from "../../money/price.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import type { Candidate } from "../../plugin/call.ts";
import type { Exchange } from "../../plugin/exchange.ts";

/**
 * The terms that decide a price in addition to counts and time: the options that the client
 * requested, and where the request is served.
 */
export type PriceTerms = Pick<PricingContext, "tier" | "size" | "quality" | "pricingAttributes">;

export function priceTermsOf(
  of: Pick<Candidate, "policy">,
  { tier, size, quality, pricingAttributes }: RequestFacts,
): PriceTerms {
  const { region } = of.policy;
  // If an endpoint has several regions, the region that will serve the request is unknown.
  return {
    tier,
    size,
    quality,
    pricingAttributes: { ...(region?.length === 1 && { region: region[0] }), ...pricingAttributes },
  };
}

/**
 * Returns the key under which the typical output size is stored: the API key together with the
 * model.
 */
export const outputHistoryKey = (x: Pick<Exchange, "identity">, model: string): string =>
  `${x.identity?.id}\n${model}`;
