// Counts durations in classes from 1 ms to 1 hour. Each class is about 20% wider than the previous
// one, so a quantile is off by at most about 10%. Two histograms can be added.

export const DURATION_CLASSES = 88;
const MAX_MS = 3_600_000;
const CLASS_WIDTH = Math.log(MAX_MS) / DURATION_CLASSES;

export const classOf = (ms: number): number =>
  ms > 1 ? Math.min(DURATION_CLASSES - 1, Math.floor(Math.log(ms) / CLASS_WIDTH)) : 0;

/**
 * Returns the geometric middle of a class, in milliseconds. All durations of the class are assumed
 * to have this value.
 */
const midpointOf = (at: number): number => Math.exp((at + 0.5) * CLASS_WIDTH);

/** Returns a quantile in milliseconds, or undefined if nothing was counted. */
export function quantile(counts: ArrayLike<number>, share: number): number | undefined {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i]!;
  if (total === 0) return undefined;
  let remaining = Math.max(1, Math.ceil(total * share));
  for (let i = 0; i < counts.length; i++) {
    remaining -= counts[i]!;
    if (remaining <= 0) return Math.round(midpointOf(i) * 10) / 10;
  }
  return undefined;
}
