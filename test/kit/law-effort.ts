// Determines how many cases of a large test one run tries. The nightly run tries all of them. Other
// runs try a part: a different one for each column of a table, so that each row and each column is
// tried.
/** Whether this is the nightly run. */
export const NIGHTLY = process.env["TOLLGATE_TIER"] === "nightly";

/**
 * Returns the number of random cases: all in the nightly run, otherwise a quarter and at least
 * `least`.
 */
export const trialCount = (all: number, least = 12): number =>
  NIGHTLY ? all : Math.min(all, Math.max(least, Math.ceil(all / 4)));

/**
 * Returns every `n`-th item, starting with the one at `column` modulo `n`. In the nightly run, it
 * returns all items.
 */
export const everyNth = <T>(n: number, all: readonly T[], column: number): readonly T[] =>
  NIGHTLY ? all : all.filter((_, row) => row % n === column % n);
