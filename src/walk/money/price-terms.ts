import type { Circumstances } from "../../money/price.ts";
import type { Survey } from "../../plugin/survey.ts";
import type { Candidate } from "../../plugin/call.ts";
import type { Exchange } from "../../plugin/exchange.ts";

/** What decides a price beside the counts and the time: what the client asked for, and where it is served. */
export type PriceTerms = Pick<Circumstances, "tier" | "size" | "quality" | "facts">;

export function termsOf(
  of: Pick<Candidate, "policy">,
  { tier, size, quality, facts }: Survey,
): PriceTerms {
  const { region } = of.policy;
  // Of several regions it is not known which one it will be.
  return {
    tier,
    size,
    quality,
    facts: { ...(region?.length === 1 && { region: region[0] }), ...facts },
  };
}

/** Whose habits count for a call's expected size: this key's with this model. */
export const usually = (x: Pick<Exchange, "identity">, model: string): string =>
  `${x.identity?.id}\n${model}`;
