// What a client is told where no provider answers: why, and when it is worth asking again.
import { CLIENT_RETRIES } from "../../model/client-retry.ts";
import { fault, type ErrorKind, type Fault } from "../../model/error.ts";
import type { HostCandidate } from "../mounted.ts";
import type { TargetRest } from "../targets/upstream-target.ts";
import { blame } from "../upstream/blame.ts";
import type { RestingTargets } from "./resting.ts";

/** Longer than this a client is not told to wait: one SDK would sleep for all of it. */
const LONGEST_MS = 60_000;
/** Where it is not known when a provider answers again. */
const UNKNOWN_MS = 1_000;
/** What is only supposed may be over long before its time: one call in a while goes to see. */
const SUPPOSED_MS = 10_000;
/** What was sent away together should not come back together. */
const SPREAD = 0.5;

/** All candidates rest and none may be asked: the one that rests for the shortest time says why. */
export function allRest(rests: RestingTargets, candidates: readonly HostCandidate[]): Error {
  const [least] = candidates
    .map((candidate) => ({ candidate, rest: rests.rest(candidate) }))
    .toSorted((a, b) => (a.rest?.until ?? 0) - (b.rest?.until ?? 0));
  const { candidate, rest } = least!;
  const why = rest?.why ?? "overloaded";
  const problem = fault(
    TELLING.has(why) ? why : "overloaded",
    `${candidate.id} failed lately (${why}) and is left alone for a while.`,
    { code: "resting", retryAfterMs: spread(left(rest)) },
  );
  return blame(problem, "gateway", candidate.provider);
}

/** Kinds of failure that a client should know by their own name; the others are a target that is down. */
const TELLING: ReadonlySet<ErrorKind> = new Set([
  "rate_limited",
  "upstream_auth",
  "upstream_quota",
]);

/** Adds to a failure when it is worth asking again, where no provider has said so. */
export function comingBack(
  failure: Fault,
  rests: RestingTargets,
  candidates: readonly HostCandidate[],
): void {
  if (CLIENT_RETRIES[failure.kind] !== "yes" || typeof failure.retryAfterMs === "number") return;
  failure.retryAfterMs = spread(Math.min(...candidates.map((one) => left(rests.rest(one)))));
}

/** What a provider said of itself is told as it is; what is only supposed here is looked at again soon. */
function left(rest: TargetRest | undefined): number {
  if (!rest) return 0;
  const ms = rest.until - performance.now();
  return rest.supposed ? Math.min(SUPPOSED_MS, ms) : ms;
}

const spread = (ms: number): number =>
  Math.min(LONGEST_MS, Math.max(UNKNOWN_MS, ms) * (1 + SPREAD * Math.random()));
