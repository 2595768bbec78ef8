// The two ways in which a test may wait. Neither is a law of speed: a busy machine makes the one longer and the other weaker,
// and neither of them red.
import { setTimeout as sleep } from "node:timers/promises";

/** What hangs is told apart from what is slow: no machine that is still of use takes so long. */
const HANGS_MS = 100_000;

/** Looks until it is so, and fails with these words where it never is. */
export async function until(
  fact: () => boolean | Promise<boolean>,
  what: () => string = () => "what is waited for",
): Promise<void> {
  for (const end = performance.now() + HANGS_MS; !(await fact()); await sleep(5))
    if (performance.now() > end) throw new Error(`It has not come to pass: ${what()}.`);
}

/** A while in which something must not come, or that another must outlast. What has to come is waited for with `until`. */
export const quiet = (ms: number): Promise<void> => sleep(ms);
