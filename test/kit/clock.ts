// The monotonic clock of this process in the hand of a test: what takes seconds in life takes none here.
import { onTestFinished, vi } from "vitest";

/** From here on `skip(ms)` puts the clock forward by so much, for all that reads it; timers fire when they did. */
export function clock(): { skip(ms: number): void } {
  const now = performance.now.bind(performance);
  let ahead = 0;
  const spy = vi.spyOn(performance, "now").mockImplementation(() => now() + ahead);
  onTestFinished(() => spy.mockRestore());
  return { skip: (ms) => void (ahead += ms) };
}
