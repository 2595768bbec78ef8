// A config that `tollgate check` accepts starts, and one that it rejects does not.
import { expect, it } from "vitest";
import { both } from "./check-and-start.ts";
import { FEATURES, pairsOf, pairwise } from "./start-features.ts";

const ON = Object.fromEntries(Object.keys(FEATURES).map((name) => [name, "on"]));

it("starts with two workers and every feature on the built-in store", async () => {
  const { check, start } = await both({ workers: "2", store: "sqlite", ...ON }, undefined);
  expect(check.ok, check.output).toBe(true);
  expect(start.ok, start.output).toBe(true);
});

it("check rejects what a start rejects: a store that cannot prune, with ledger.retention", async () => {
  const { check, start } = await both(
    { workers: "1", store: "memory", retention: "on" },
    undefined,
  );
  expect([check.ok, start.ok]).toEqual([false, false]);
  expect(check.output).toMatch(/gateway\.yaml:\d+:\d+/);
  expect(check.output).toContain("cannot apply ledger.retention");
  expect(start.output).toContain("cannot apply ledger.retention");
});

it("the rows of the long test cover every pair of values", () => {
  const rows = pairwise();
  const covered = new Set(rows.flatMap(pairsOf));
  const factors = Object.keys(FEATURES).length;
  // workers (2 values) and store (3) with each other and with each feature, features with each
  // other; without the pair of memory and retention, which is rejected.
  expect(covered.size).toBe(6 + factors * (4 + 6) + 4 * ((factors * (factors - 1)) / 2) - 1);
  expect(rows.length).toBeLessThan(20);
});
