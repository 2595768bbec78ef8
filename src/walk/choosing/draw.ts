// Shares, drawn: each comes first as often as its share says, and of those that are left each does so again. Chance draws, or a hash.
import type { HostCandidate } from "../mounted.ts";

/**
 * `luck`: evenly spread over 0 to 1, one for each seat. What has no share comes after all that have one, as it was written.
 */
export function drawn(
  seats: readonly HostCandidate[],
  luck: (seat: HostCandidate) => number,
): readonly HostCandidate[] {
  if (seats.length < 2) return seats;
  return seats
    .map((seat) => ({ seat, at: arrival(luck(seat), seat["~"].share) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
    .map(({ seat }) => seat);
}

/** When the first call of a process with this rate comes: of several such processes, each is first in proportion to its rate. */
const arrival = (luck: number, rate: number): number =>
  rate > 0 ? -Math.log(luck) / rate : Infinity;

/** How often it comes first. */
export function shareOf(seat: HostCandidate, seats: readonly HostCandidate[]): string {
  const all = seats.reduce((sum, each) => sum + each["~"].share, 0);
  return all > 0 ? `${Number(((100 * seat["~"].share) / all).toFixed(1))} %` : "no share";
}
