// A scope's repeated task: never concurrent with itself, and not after its end.
import { expect, it, vi } from "vitest";
import { LifetimeScope } from "../../../src/lib/lifetime-scope.ts";

it("a tick never overlaps the previous one, and none runs after the scope has ended", async () => {
  vi.useFakeTimers();
  try {
    const scope = new LifetimeScope();
    const ticks: (() => void)[] = [];
    scope.every(
      10,
      () => new Promise<void>((resolve) => void ticks.push(resolve)),
      () => {},
    );
    await vi.advanceTimersByTimeAsync(35);
    expect(ticks).toHaveLength(1);
    ticks[0]!();
    await vi.advanceTimersByTimeAsync(10);
    expect(ticks).toHaveLength(2);
    ticks[1]!();
    await vi.advanceTimersByTimeAsync(0);
    scope.beginClose();
    await vi.advanceTimersByTimeAsync(30);
    expect(ticks).toHaveLength(2);
    await scope[Symbol.asyncDispose]();
  } finally {
    vi.useRealTimers();
  }
});
