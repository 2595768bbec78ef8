// What a request names by an id is kept by one account of one provider.
import type { HostCandidate } from "../mounted.ts";
import type { LeftOut } from "./findings.ts";
import { leave } from "./left-out.ts";

/**
 * An id means something to one account alone. Which one is not known, so it is the first that is written of those that are relayed to:
 * the same for each request, whatever `pick` says and whatever fails.
 */
export function atOneAccount(all: HostCandidate[], out: LeftOut[]): HostCandidate[] {
  const home = all.find((one) => one["~"].provider.state === "relay");
  if (!home) return all;
  return all.filter(
    (one) =>
      (one.provider === home.provider && one.credential === home.credential) ||
      leave(
        out,
        one,
        "state",
        "not_found",
        "bound_to_account",
        "what the request names is kept by another account",
      ),
  );
}
