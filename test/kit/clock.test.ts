// Tests of the test clock: what it moves, what it fires and in which order, and what it leaves
// behind.
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { installTestClock } from "./clock.ts";
import { turnEventLoop } from "./wait.ts";

/** Longer than a test may take: it fires only if time is skipped. */
const LONG_MS = 600_000;

describe("a clock that is moved", () => {
  it("fires timers at their time and in their order, and repeated ones as often as they are due", async () => {
    const time = installTestClock();
    const began = time.now();
    const fired: [string, number][] = [];
    const note = (name: string) => () =>
      void fired.push([name, Math.round((time.now() - began) / LONG_MS)]);
    setTimeout(note("third"), 3 * LONG_MS);
    setTimeout(note("first"), LONG_MS);
    const every = setInterval(note("every"), 2 * LONG_MS);
    clearTimeout(setTimeout(note("never"), LONG_MS));
    time.skip(LONG_MS + 1_000);
    expect(fired).toEqual([["first", 1]]);
    time.skip(4 * LONG_MS);
    expect(fired.slice(1)).toEqual([
      ["every", 2],
      ["third", 3],
      ["every", 4],
    ]);
    clearInterval(every);
  });

  it("moves promised timers and signals with a timeout, and the wall clock if configured", async () => {
    const time = installTestClock({ wall: true });
    const at = Date.now();
    const asleep = sleep(LONG_MS, "awake");
    const stopped = new AbortController();
    const aborted = sleep(LONG_MS, undefined, { signal: stopped.signal }).catch(
      (error: Error) => error.name,
    );
    const late = AbortSignal.timeout(LONG_MS);
    stopped.abort();
    expect([await aborted, late.aborted]).toEqual(["AbortError", false]);
    time.skip(LONG_MS + 1_000);
    expect([await asleep, late.aborted, late.reason.name]).toEqual(["awake", true, "TimeoutError"]);
    const passed = Date.now() - at;
    expect(passed).toBeGreaterThan(LONG_MS);
  });
});

describe("a stopped clock", () => {
  it("does not move and fires nothing, and catches up when it continues", async () => {
    const time = installTestClock();
    time.stop();
    const at = time.now();
    const fired: string[] = [];
    setTimeout(() => fired.push("short"), 0);
    setTimeout(() => fired.push("long"), LONG_MS);
    await turnEventLoop(2_000);
    expect([time.now(), performance.now(), fired]).toEqual([at, at, []]);
    time.skip(5);
    expect([time.now(), fired]).toEqual([at + 5, ["short"]]);
    const after = sleep(1, "after");
    await turnEventLoop(2_000);
    time.go();
    expect(await after).toBe("after");
  });
});

it("is the system clock again after the test", () => {
  expect(setTimeout.toString()).toContain("new Timeout");
  expect(Math.abs(performance.timeOrigin + performance.now() - Date.now())).toBeLessThan(
    LONG_MS / 2,
  );
});
