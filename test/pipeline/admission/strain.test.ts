// Delay of a process by its own work, because a machine with other load is no reason to reject a
// client.
import { fork } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LoadMonitor } from "../../../src/pipeline/admission/load-monitor.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

/** This many ticks, each with this delay and this CPU time of the process. */
function after(ticks: number, lateMs: number, workedMs: number): LoadMonitor {
  let [now, worked] = [0, 0];
  const strain = new LoadMonitor({ now: () => now, cpuMs: () => worked });
  strain.start();
  for (let i = 0; i < ticks; i++) {
    now += 100 + lateMs;
    worked += workedMs;
    vi.advanceTimersByTime(100);
  }
  return strain;
}

it("a process that is busy with its own work admits nothing", () => {
  using one = after(20, 2_000, 2_100);
  expect([one.isLagging, one.isOverloaded]).toEqual([true, true]);
  using some = after(20, 400, 500);
  expect([some.isLagging, some.isOverloaded]).toEqual([true, false]);
});

it("a process that waits for the CPU, or was suspended, is neither strained nor overloaded", () => {
  using starved = after(20, 5_000, 60);
  expect([starved.isLagging, starved.isOverloaded]).toEqual([false, false]);
});

it("a process on time is neither, however much it works", () => {
  using busy = after(20, 0, 100);
  expect([busy.isLagging, busy.isOverloaded]).toEqual([false, false]);
});

/**
 * The memory of a small container. Near the limit of a smaller one, V8 itself ends the process
 * during a collection.
 */
const HEAP_MB = 768;

it("a process whose heap exceeds its share admits no new calls until memory is free", async () => {
  const child = fork(new URL("./full-heap.ts", import.meta.url), [String(HEAP_MB)], {
    execArgv: [`--max-old-space-size=${HEAP_MB}`],
  });
  using _ = { [Symbol.dispose]: () => void child.kill("SIGKILL") };
  const asked = async (share: number, running = true) => {
    child.send({ share, running });
    const [{ part, taken }] = (await once(child, "message")) as [{ part: number; taken: boolean }];
    expect(part).toBeGreaterThanOrEqual(share);
    return taken;
  };
  expect(await asked(0.01)).toBe(true);
  expect(await asked(0.85)).toBe(true);
  expect(await asked(0.96)).toBe(false);
  // An idle process would release nothing, so one call is always admitted.
  expect(await asked(0.96, false)).toBe(true);
  expect(await asked(0.96)).toBe(false);
  expect(await asked(0.3)).toBe(true);
});
