import { setTimeout as sleep } from "node:timers/promises";

/** A generator that was delayed does not catch up, because that would be a burst of its own. */
const BEHIND_MS = 50;

/** Starts this many things per second, whatever their results are. `each` receives their number. */
export async function runPaced(
  rate: number,
  going: () => boolean,
  each: (i: number) => void,
): Promise<void> {
  let next = performance.now();
  for (let i = 0; going(); i++) {
    const now = performance.now();
    if (next > now) await sleep(next - now);
    each(i);
    next = Math.max(next + 1_000 / rate, now - BEHIND_MS);
  }
}
