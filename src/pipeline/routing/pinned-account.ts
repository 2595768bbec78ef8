// What a request names by an id is kept by one account of one provider.
import type { HostCandidate } from "../exchange/mounted.ts";
import type { ExcludedCandidate } from "../exchange/route-findings.ts";
import { exclude } from "./exclusions.ts";

/**
 * An id means something to one account alone. Which one is not known, so it is the first that is written of those that are relayed to:
 * the same for each request, whatever `pick` says and whatever fails.
 */
export function pinToAccount(all: HostCandidate[], excluded: ExcludedCandidate[]): HostCandidate[] {
  const pinned = all.find((one) => one["~"].provider.stateMode === "relay");
  if (!pinned) return all;
  return all.filter(
    (one) =>
      (one.provider === pinned.provider && one.credential === pinned.credential) ||
      exclude(
        excluded,
        one,
        "state",
        "not_found",
        "account_bound",
        "what the request names is kept by another account",
      ),
  );
}
