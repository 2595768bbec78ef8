// Shuffles candidates by their shares. Each comes first with the probability of its share, and the
// rest are ordered the same way. The randomness is a random number or a hash.
import type { HostCandidate } from "../exchange/mounted.ts";

/**
 * Shuffles candidates. `randomOf`: returns a uniform number between 0 and 1 for each. Candidates
 * without a share come last, in their order.
 */
export function weightedShuffle(
  candidates: readonly HostCandidate[],
  randomOf: (seat: HostCandidate) => number,
): readonly HostCandidate[] {
  if (candidates.length < 2) return candidates;
  return candidates
    .map((seat) => ({ seat, at: arrivalTime(randomOf(seat), seat.mounted.share) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
    .map(({ seat }) => seat);
}

/**
 * Returns the time of the first arrival in a process with this rate. Among several such processes,
 * each is first in proportion to its rate.
 */
const arrivalTime = (luck: number, rate: number): number =>
  rate > 0 ? -Math.log(luck) / rate : Infinity;

/** Formats how often a candidate comes first. */
export function formatShare(
  candidate: HostCandidate,
  candidates: readonly HostCandidate[],
): string {
  const all = candidates.reduce((sum, each) => sum + each.mounted.share, 0);
  return all > 0 ? `${Number(((100 * candidate.mounted.share) / all).toFixed(1))} %` : "no share";
}
