// The names that a provider reports its counts under.
import { BOUNDS } from "../../lib/bounds.ts";
import type { UsageSeen } from "../../model/event.ts";

const isName = (said: string | undefined): boolean =>
  said === undefined || said.length <= BOUNDS.id.most;

/** Names go into a ledger's row as the provider wrote them. A longer one is left out. */
export function withNames(seen: UsageSeen): UsageSeen {
  const { model, tier, size, quality } = seen;
  if (isName(model) && isName(tier) && isName(size) && isName(quality)) return seen;
  const kept = (said: string | undefined) => (isName(said) ? said : undefined);
  return {
    ...seen,
    model: kept(model),
    tier: kept(tier),
    size: kept(size),
    quality: kept(quality),
  };
}
