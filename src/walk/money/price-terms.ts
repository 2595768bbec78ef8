import type { Circumstances } from "../../money/price.ts";
import type { Survey } from "../../plugin/protocol.ts";
import type { HostCall } from "../call.ts";

/** What decides a price beside the counts and the time: what the client asked for, and where it is served. */
export type PriceTerms = Pick<Circumstances, "tier" | "size" | "quality" | "facts">;

export function termsOf(call: HostCall, { tier, size, quality, facts }: Survey): PriceTerms {
  const { region } = call.policy;
  // Of several regions it is not known which one it will be.
  return {
    tier,
    size,
    quality,
    facts: { ...(region?.length === 1 && { region: region[0] }), ...facts },
  };
}

/** Whose habits count for a call's expected size: this key's with this model. */
export const usually = (call: HostCall): string => `${call.exchange.identity!.id}\n${call.id}`;
