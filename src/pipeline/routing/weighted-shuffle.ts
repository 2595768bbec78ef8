// Shares, drawn: each comes first as often as its share says, and of those that are left each does so again. Chance draws, or a hash.
import type { HostCandidate } from "../exchange/mounted.ts";

/**
 * `luck`: evenly spread over 0 to 1, one for each seat. What has no share comes after all that have one, as it was written.
 */
export function weightedShuffle(
  candidates: readonly HostCandidate[],
  randomOf: (seat: HostCandidate) => number,
): readonly HostCandidate[] {
  if (candidates.length < 2) return candidates;
  return candidates
    .map((seat) => ({ seat, at: arrivalTime(randomOf(seat), seat["~"].share) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
    .map(({ seat }) => seat);
}

/** When the first call of a process with this rate comes: of several such processes, each is first in proportion to its rate. */
const arrivalTime = (luck: number, rate: number): number =>
  rate > 0 ? -Math.log(luck) / rate : Infinity;

/** How often it comes first. */
export function formatShare(
  candidate: HostCandidate,
  candidates: readonly HostCandidate[],
): string {
  const all = candidates.reduce((sum, each) => sum + each["~"].share, 0);
  return all > 0 ? `${Number(((100 * candidate["~"].share) / all).toFixed(1))} %` : "no share";
}
