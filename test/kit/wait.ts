// How a test waits. Neither way depends on the speed of the machine.
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";

/** No machine that is still usable takes this long: a test that reaches it hangs. */
const HANGS_MS = 100_000;

// Taken now, because a test may put its own clock in their place.
const now = performance.now.bind(performance);
const pause = sleep;

/**
 * Waits until `fact` is true, and fails with the text of `what` if it never is. `withinMs`: for a time that operators are promised, ten
 * times that time.
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
 * Lets the event loop turn `many` times. Promises and sockets of this process that have something to do get to it, without a wait of
 * a fixed time. For work that takes a while, and before a test asserts that something has not happened. If another process or
 * thread would do it, wait for an event that can only come later instead.
 */
export async function turnEventLoop(many = 50): Promise<void> {
  for (let n = 0; n < many; n++) await turn();
}

/** Waits until `value` is the same in `many` turns of the event loop in a row, and returns it. */
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
