// The names that a provider reports its counts under.
import { BOUNDS } from "../../lib/bounds.ts";
import type { UsageReport } from "../../model/event.ts";

const isShortEnough = (said: string | undefined): boolean =>
  said === undefined || said.length <= BOUNDS.responseId.max;

/** Names go into a ledger's row as the provider wrote them. A longer one is left out. */
export function dropLongNames(seen: UsageReport): UsageReport {
  const { model, tier, size, quality } = seen;
  if (isShortEnough(model) && isShortEnough(tier) && isShortEnough(size) && isShortEnough(quality))
    return seen;
  const kept = (said: string | undefined) => (isShortEnough(said) ? said : undefined);
  return {
    ...seen,
    model: kept(model),
    tier: kept(tier),
    size: kept(size),
    quality: kept(quality),
  };
}
