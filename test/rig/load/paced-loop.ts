import { setTimeout as sleep } from "node:timers/promises";

/** A generator that was held up for longer does not make up for it: that would be a herd of its own. */
const BEHIND_MS = 50;

/** Begins so many things a second, whatever becomes of them; `each` gets their number. */
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
