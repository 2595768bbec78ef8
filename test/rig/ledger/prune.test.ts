import { expect, it } from "vitest";
import { prune } from "./prune.ts";
import { BESIDE_OTHERS } from "../rig.ts";

const SHORT = { rows: 12_000, kills: 3, seed: 7, rate: 200, alone: 2, patience: BESIDE_OTHERS };

it("rows are pruned during calls, with a kill in between: sums, budgets, and the chain are unchanged", async () => {
  const { wrong, counts } = await prune(SHORT, () => {});
  expect(wrong).toEqual([]);
  expect(counts["pruned"]).toBeGreaterThan(5_000);
  expect(counts["served"]).toBeGreaterThan(0);
});

it.concurrent.each([
  ["costless", /sums or budgets are not/],
  ["forgiving", /\/meter\/.* The meter counts \d+, but its entries sum up to/],
  ["unanchored", /^\/checkpoint /m],
  ["hasty", /^\/checkpoint_rollup\/\d+ /m],
  ["holding", /ms beside a prune\nthe longest step took \d{4,} ms/],
] as const)("a store that prunes and is %s is detected", async (mutant, found) => {
  const { wrong } = await prune({ ...SHORT, kills: 0, patience: 1, mutant }, () => {});
  expect(wrong.join("\n")).toMatch(found);
});
