// What a client is told where no provider is called: every one asked for a pause.
import { createFault } from "../../model/error.ts";
import type { HostCandidate } from "../exchange/mounted.ts";
import { attributeFault } from "../faults/fault-source.ts";
import type { TargetHealth } from "./target-health.ts";

/** Every provider asked for a pause for its whole account: the shortest one is told, as it is. */
export function createAccountLimitedError(
  health: TargetHealth,
  candidates: readonly HostCandidate[],
  client: string,
): Error {
  const until = (one: HostCandidate) => health.statusOf(one, client)?.until ?? 0;
  const [first] = candidates.toSorted((a, b) => until(a) - until(b));
  const ms = Math.max(1, Math.floor(until(first!) - health.clock.now()));
  const { id, provider } = first!;
  const problem = createFault(
    "rate_limited",
    `${provider} answered 429 for the whole account and asked for a pause. No request for ${id} is sent until then.`,
    { code: "rate_limit_exceeded", retryAfterMs: ms },
  );
  return attributeFault(problem, "gateway", provider);
}
