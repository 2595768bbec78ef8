import { expect, it } from "vitest";
import { sameUsage } from "./usage.ts";

it("usage in responses, in the ledger, and in the bill is the same", async () => {
  const { wrong, counts } = await sameUsage({ trials: 5, seed: 7 });
  expect(wrong).toEqual([]);
  expect(counts["compared"]).toBe(120);
  expect(counts["hidden"]).toBeGreaterThan(0);
  expect(counts["estimated"]).toBeGreaterThan(0);
});
