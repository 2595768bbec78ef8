import { expect, it } from "vitest";
import { budget } from "./budget.ts";

const worth = { requests: 500, worth: 50, seed: 7 };

it("500 concurrent calls on a budget for 50: exactly 50", async () => {
  const verdict = await budget({ ...worth, rounds: 3, kills: false });
  expect(verdict.wrong).toEqual([]);
  expect(verdict.counts["served"]).toBe(150);
  expect(verdict.counts["moves"]).toBeGreaterThan(0);
});

it("500 concurrent calls of twenty keys on a team's budget of 50 inside an organization's of 40, moved during the run: exactly 40", async () => {
  const verdict = await budget({
    requests: 500,
    worth: 40,
    seed: 7,
    rounds: 1,
    from: 2,
    kills: false,
  });
  expect(verdict.wrong).toEqual([]);
  expect(verdict.counts["served"]).toBe(40);
  expect(verdict.counts["moves"]).toBeGreaterThan(0);
});

it("with a simulated power failure in between, never more", async () => {
  const verdict = await budget({ ...worth, rounds: 3, kills: true });
  expect(verdict.wrong).toEqual([]);
  expect(verdict.counts["refused"]).toBeGreaterThan(0);
});
