import { expect, it } from "vitest";
import { runBatches } from "./batches.ts";

it("the rows of batches add up to the provider's usage and to half of the list price", async () => {
  const { wrong, counts } = await runBatches({ batches: 60, restarts: 6, seed: 3 });
  expect(wrong).toEqual([]);
  expect(counts["batches"]).toBe(60);
});
