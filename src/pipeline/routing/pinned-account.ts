// Pins a request that refers to a stored object by ID to the account that can contain the object.
import type { HostCandidate } from "../exchange/mounted.ts";
import type { ExcludedCandidate } from "./resolution.ts";
import { exclude } from "./exclusions.ts";

/**
 * Keeps only the candidates of one account, because an ID is valid in one account only. It is
 * unknown which one. The first account in gateway.yaml whose state is relayed is used, so that it
 * is the same for each request, regardless of `pick` and of failures.
 */
export function pinToAccount(all: HostCandidate[], excluded: ExcludedCandidate[]): HostCandidate[] {
  const pinned = all.find((one) => one.mounted.provider.stateMode === "relay");
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
        "the request refers to an object that belongs to another account",
      ),
  );
}
