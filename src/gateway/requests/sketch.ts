// How long things took, as counts in classes from a millisecond to an hour. Each class is a fifth wider than the one before, so a
// quantile is off by a tenth at most, and two counts add up to the count of both.

export const CLASSES = 88;
const LONGEST_MS = 3_600_000;
const WIDTH = Math.log(LONGEST_MS) / CLASSES;

export const classOf = (ms: number): number =>
  ms > 1 ? Math.min(CLASSES - 1, Math.floor(Math.log(ms) / WIDTH)) : 0;

/** The geometric middle of a class: what its members are taken for. */
const middleOf = (at: number): number => Math.exp((at + 0.5) * WIDTH);

/** Milliseconds; undefined where nothing was counted. */
export function quantile(counts: ArrayLike<number>, share: number): number | undefined {
  let total = 0;
  for (let i = 0; i < counts.length; i++) total += counts[i]!;
  if (total === 0) return undefined;
  let left = Math.max(1, Math.ceil(total * share));
  for (let i = 0; i < counts.length; i++) {
    left -= counts[i]!;
    if (left <= 0) return Math.round(middleOf(i) * 10) / 10;
  }
  return undefined;
}
