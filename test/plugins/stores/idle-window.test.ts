import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { IdleWindow } from "../../../plugins/stores/sqlite/sums/rollups.ts";

/** Commands per second, and the number of pending ones when they were summed. */
async function lived(seconds: readonly number[], end = false): Promise<number[]> {
  const summed: number[] = [];
  let behind = 0;
  const lull = new IdleWindow(async () => {
    summed.push(behind);
    behind = 0;
  });
  for (const commands of seconds) {
    for (let left = commands; left > 0; left -= 1_000) {
      behind += Math.min(1_000, left);
      lull.addCommands(Math.min(1_000, left));
    }
    if (end) lull.stop();
    await vi.advanceTimersByTimeAsync(1_000);
  }
  return summed;
}

describe("written rows are summed", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("not while there are few", async () => {
    expect(await lived([10_000, 10_000, 10_000, 0, 0])).toEqual([]);
  });

  it("in the first second with few writes", async () => {
    expect(await lived([40_000, 16_000, 16_000, 100, 0])).toEqual([72_100]);
  });

  it("once, and again when it is worthwhile", async () => {
    expect(await lived([40_000, 0, 0, 0, 40_000, 0, 0])).toEqual([40_000, 40_000]);
  });

  it("eventually, however busy the store is", async () => {
    const [first] = await lived(Array.from({ length: 40 }, () => 16_000));
    expect(first).toBeGreaterThanOrEqual(524_288);
    expect(first).toBeLessThanOrEqual(524_288 + 16_000);
  });

  it("no longer after the store is closed", async () => {
    expect(await lived([40_000, 0, 0], true)).toEqual([]);
  });
});
