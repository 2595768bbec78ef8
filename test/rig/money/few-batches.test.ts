import { expect, it } from "vitest";
import { runBatches } from "./batches.ts";

it("each line of a few batches has one bill, in each format and at each provider", async () => {
  const { wrong, counts } = await runBatches({ batches: 16, swaps: 1, seed: 4, store: "memory" });
  expect(wrong).toEqual([]);
  expect(counts["batches"]).toBe(16);
});
