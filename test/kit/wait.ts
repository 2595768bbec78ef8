// Functions with which a test waits. None depends on the speed of the machine.
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";

/** Longer than any usable machine needs: a test that reaches it hangs. */
const HANGS_MS = 100_000;

// Captured at import, because a test may replace the clock.
const now = performance.now.bind(performance);
const pause = sleep;

/**
 * Waits until `fact` is true, and fails with the text of `what` if it never is. `withinMs`: a time
 * that operators are promised; the wait allows ten times as long.
 */
export async function until(
  fact: () => boolean | Promise<boolean>,
  what: () => string = () => "what is waited for",
  withinMs = HANGS_MS,
): Promise<void> {
  for (const end = now() + withinMs; !(await fact()); await pause(5))
    if (now() > end) throw new Error(`It has not come to pass: ${what()}.`);
}

/**
 * Runs `many` turns of the event loop, so that promises and sockets of this process can proceed
 * without a fixed wait. Use it for work that takes some time, and before an assertion that
 * something has not happened. If another process or thread would do the work, wait for an event
 * that can only follow it.
 */
export async function turnEventLoop(many = 50): Promise<void> {
  for (let n = 0; n < many; n++) await turn();
}

/**
 * Waits until `value` is the same in `many` consecutive turns of the event loop, and returns it.
 */
export async function waitUntilStable<T>(value: () => T, many = 200): Promise<T> {
  let last = value();
  for (let same = 0; same < many; same++) {
    await turn();
    if (value() === last) continue;
    last = value();
    same = 0;
  }
  return last;
}
