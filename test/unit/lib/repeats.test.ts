// A repeated log line: it is logged immediately the first time, then at intervals, and the count is
// complete.
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LogThrottle } from "../../../src/lib/log/log-throttle.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("repeated log lines", () => {
  it("are logged immediately, and then with a count at intervals", () => {
    const step = fc.record({ what: fc.constantFrom("a", "b", "c"), after: fc.nat(90_000) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const told = new Map<string, number>();
        const at: Record<string, number[]> = {};
        const repeats = new LogThrottle(60_000);
        const asked = new Map<string, number>();
        for (const { what, after } of steps) {
          vi.advanceTimersByTime(after);
          asked.set(what, (asked.get(what) ?? 0) + 1);
          repeats.log(what, (times) => {
            told.set(what, (told.get(what) ?? 0) + times);
            (at[what] ??= []).push(Date.now());
          });
        }
        repeats[Symbol.dispose]();
        expect(told).toEqual(asked);
        // The last one of each may be logged at the end.
        for (const times of Object.values(at))
          for (let i = 1; i < times.length - 1; i++)
            expect(times[i]! - times[i - 1]!).toBeGreaterThanOrEqual(60_000);
      }),
    );
  });

  it("have the fields of the latest one", () => {
    const said: string[] = [];
    const repeats = new LogThrottle(1_000);
    for (const name of ["one", "two", "three"])
      repeats.log("x", (times) => said.push(`${name} ${times}`));
    vi.advanceTimersByTime(1_000);
    expect(said).toEqual(["one 1", "three 2"]);
    vi.advanceTimersByTime(1_000);
    repeats.log("x", (times) => said.push(`four ${times}`));
    expect(said.at(-1)).toBe("four 1");
  });

  it("of too many kinds are counted together", () => {
    const repeats = new LogThrottle();
    let [lines, times] = [0, 0];
    for (let i = 0; i < 100_000; i++)
      repeats.log(`made up ${i}`, (n) => {
        lines++;
        times += n;
      });
    repeats[Symbol.dispose]();
    expect([lines <= 1_002, times]).toEqual([true, 100_000]);
  });
});
