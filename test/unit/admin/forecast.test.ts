import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  BudgetWatch,
  burnRateOf,
  exhaustionOf,
  projectMonth,
} from "../../../src/admin/commands/forecast.ts";

const DAY_MS = 86_400_000;
const NOW = Date.parse("2026-11-29T12:00:00Z");
const USD = 1_000_000_000n;
const spend = (...days: readonly (readonly [day: string, usd: bigint])[]) =>
  new Map(days.map(([day, usd]) => [day, usd * USD]));

describe("a burn rate", () => {
  it("is the mean of complete days from the first day with spend, without today", () => {
    const days = spend(["2026-11-29", 100n], ["2026-11-28", 4n], ["2026-11-26", 2n]);
    expect(burnRateOf(days, NOW, 14)).toEqual({ nanoPerDay: 2n * USD, days: 3 });
    expect(burnRateOf(days, NOW, 1)).toEqual({ nanoPerDay: 4n * USD, days: 1 });
  });

  it("extrapolates today if no complete day has spend", () => {
    expect(burnRateOf(spend(["2026-11-29", 3n]), NOW, 14)).toEqual({
      nanoPerDay: 6n * USD,
      days: 0,
    });
    expect(burnRateOf(new Map(), NOW, 14)).toEqual({ nanoPerDay: 0n, days: 0 });
  });
});

describe("the exhaustion of a budget", () => {
  const rate = { nanoPerDay: 2n * USD, days: 3 };
  const budget = {
    used: 90n * USD,
    max: 100n * USD,
    per: "month" as const,
    resetsAt: NOW + 30 * DAY_MS,
  };

  it("is the rest at the rate, unless the budget resets first", () => {
    expect(exhaustionOf(budget, rate, NOW)).toBe(NOW + 5 * DAY_MS);
    expect(exhaustionOf({ ...budget, resetsAt: NOW + 5 * DAY_MS }, rate, NOW)).toBeUndefined();
    expect(exhaustionOf({ ...budget, per: "total", resetsAt: 0 }, rate, NOW)).toBe(
      NOW + 5 * DAY_MS,
    );
    expect(exhaustionOf({ ...budget, used: 100n * USD }, rate, NOW)).toBe(NOW);
    expect(exhaustionOf(budget, { nanoPerDay: 0n, days: 0 }, NOW)).toBeUndefined();
    expect(
      exhaustionOf({ ...budget, per: "total", max: 10n ** 30n }, { nanoPerDay: 1n, days: 1 }, NOW),
    ).toBeUndefined();
  });

  it("law: more used or a higher rate is never exhausted later", () => {
    const amount = fc.bigInt({ min: 0n, max: 1_000n * USD });
    fc.assert(
      fc.property(amount, amount, amount, amount, (used, more, slow, faster) => {
        const of = (u: bigint, r: bigint) =>
          exhaustionOf(
            { ...budget, used: u, max: 1_000n * USD, per: "total" },
            { nanoPerDay: r, days: 1 },
            NOW,
          ) ?? Infinity;
        expect(of(used + more, slow)).toBeLessThanOrEqual(of(used, slow));
        expect(of(used, slow + faster)).toBeLessThanOrEqual(of(used, slow));
      }),
    );
  });
});

it("the projection of a month adds the rest of the month to its spend", () => {
  const days = spend(["2026-11-01", 10n], ["2026-10-31", 99n], ["2026-11-28", 2n]);
  expect(projectMonth(days, { nanoPerDay: 2n * USD, days: 1 }, NOW)).toEqual({
    spent: 12n * USD,
    projected: 15n * USD,
  });
});

it("reports a budget that will be exhausted within 7 days, once per window", async () => {
  let used = 90n * USD;
  let resetsAt = NOW + 20 * DAY_MS;
  const limit = { scope: "key:k1", unit: "nano_usd", max: 100n * USD, per: "month" } as const;
  const key = { id: "k1", name: "web", limits: [limit] };
  const spent = (by: object, nano: bigint) => ({
    by,
    calls: 1,
    usage: {},
    costNano: nano,
    unpriced: 0,
  });
  const watch = new BudgetWatch({
    store: {
      sumEntries: async ({ by }: { by: readonly string[] }) =>
        by.includes("key") ? [spent({ key: "k1", day: "2026-11-28" }, 2n * USD)] : [],
    },
    repository: {
      listKeys: async () => [key],
      readLimits: async (limits: readonly object[]) =>
        limits.map((each) => ({ ...each, used, resetsAt })),
    },
    readTree: async () => ({ all: () => [], path: (id: string) => id }),
  } as never);
  expect(await watch.check(NOW)).toEqual([
    {
      type: "budget_exhausts",
      at: NOW,
      scope: "key:k1",
      limit: "usd=100/month",
      usedUsd: "90",
      maxUsd: "100",
      perDayUsd: "2",
      exhaustsAt: NOW + 5 * DAY_MS,
      resetsAt,
    },
  ]);
  expect(await watch.check(NOW + 1)).toEqual([]);
  used = 50n * USD;
  expect(await watch.check(NOW + 2)).toEqual([]);
  used = 95n * USD;
  expect(await watch.check(NOW + 3)).toEqual([]);
  resetsAt += 30 * DAY_MS;
  expect(await watch.check(NOW + 4)).toHaveLength(1);
});
