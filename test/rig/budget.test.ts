import { expect, it } from "vitest";
import { budget } from "./budget.ts";

const worth = { requests: 500, worth: 50, seed: 7 };

it("500 at once on a budget worth 50: exactly 50", async () => {
  const verdict = await budget({ ...worth, rounds: 2, kills: false });
  expect(verdict.wrong).toEqual([]);
  expect(verdict.counts["served"]).toBe(100);
});

it("with the plug pulled meanwhile, never more", async () => {
  const verdict = await budget({ ...worth, rounds: 3, kills: true });
  expect(verdict.wrong).toEqual([]);
  expect(verdict.counts["refused"]).toBeGreaterThan(0);
});
