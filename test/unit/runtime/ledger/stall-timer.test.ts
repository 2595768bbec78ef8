import * as fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { StallTimer } from "../../../../src/runtime/ledger/stall-timer.ts";

const LIMIT_MS = 50;

beforeEach(
  () =>
    void vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"],
    }),
);
afterEach(() => void vi.useRealTimers());

it("reports each batch at the times at which an interval of its own would", () => {
  const batch = fc.record({ pauseMs: fc.nat(200), lastsMs: fc.nat(200) });
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 12 }), (batches) => {
      const began = performance.now();
      const now = () => performance.now() - began;
      const reported: number[] = [];
      const expected: number[] = [];
      const timer = new StallTimer(LIMIT_MS, () => void reported.push(now()));
      for (const { pauseMs, lastsMs } of batches) {
        vi.advanceTimersByTime(pauseMs);
        const interval = setInterval(() => void expected.push(now()), LIMIT_MS);
        timer.start();
        vi.advanceTimersByTime(lastsMs);
        timer.stop();
        clearInterval(interval);
      }
      vi.advanceTimersByTime(2 * LIMIT_MS);
      expect(reported).toEqual(expected);
      expect(vi.getTimerCount()).toBe(0);
    }),
  );
});

it("keeps its timer for the next batch", () => {
  const timer = new StallTimer(LIMIT_MS, () => expect.unreachable());
  for (let n = 0; n < LIMIT_MS; n++) {
    timer.start();
    timer.stop();
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(1);
  }
});
