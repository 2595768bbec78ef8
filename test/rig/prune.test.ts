import { expect, it } from "vitest";
import { prune } from "./prune.ts";

it("rows are pruned while calls are served, killed in the middle: sums, budgets and the chain are what they were", async () => {
  const { wrong, counts } = await prune({ rows: 12_000, kills: 3, seed: 7, rate: 200 }, () => {});
  expect(wrong).toEqual([]);
  expect(counts["pruned"]).toBeGreaterThan(5_000);
  expect(counts["served"]).toBeGreaterThan(0);
});
