// A count can only raise a bill: whatever a provider reports in addition to priced units, the bill
// is never lower.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Facts, Price } from "../../../src/model/facts.ts";
import { UNITS, type Unit, type Usage } from "../../../src/model/usage.ts";
import {
  calculateBill,
  calculateCost,
  isExact,
  EQUIVALENT_UNITS,
  type PricingContext,
} from "../../../src/money/price.ts";
import { mergeReports } from "../../../src/pipeline/metering/call-tally.ts";

const FACTS = join(import.meta.dirname, "../../../plugins/providers/facts");
const shipped = readdirSync(FACTS)
  .filter((name) => name.endsWith(".json"))
  .flatMap((name) => (JSON.parse(readFileSync(join(FACTS, name), "utf8")) as Facts).models)
  .flatMap(({ price }) => (price ? [price] : []));

/** Prices with the same units and conditions: one of each form. */
const shapeOf = (price: Price): string =>
  JSON.stringify(price, (key, value: unknown) => (key === "usd" ? 0 : value));
const SHAPES = [...new Map(shipped.map((price) => [shapeOf(price), price])).values()];
const OWN: readonly Price[] = [
  {
    lines: [
      { unit: "input", usd: "3", per: 1_000_000 },
      { unit: "output", usd: "15", per: 1_000_000 },
    ],
  },
  {
    lines: [
      { unit: "input", usd: "3", per: 1_000_000 },
      { unit: "output", usd: "15", per: 1_000_000 },
    ],
    tiers: { priority: [{ unit: "input", usd: "6", per: 1_000_000 }] },
    over: [
      {
        input: 200_000,
        lines: [{ unit: "input", usd: "6", per: 1_000_000 }],
        tiers: {
          priority: [{ unit: "input", usd: "20", per: 1_000_000 }],
          scale: [{ unit: "output", usd: "90", per: 1_000_000 }],
        },
      },
    ],
  },
  { lines: [{ unit: "requests", usd: "0.01", per: 1 }] },
  { lines: [{ unit: "searches", usd: "0.002", per: 1 }] },
  { lines: [{ unit: "seconds", usd: "0.0001", per: 1 }] },
  { lines: [{ unit: "characters", usd: "0.000015", per: 1 }] },
  {
    lines: [
      { unit: "images", usd: "0.01", per: 1, variant: { quality: "low" } },
      { unit: "images", usd: "0.17", per: 1, variant: { quality: "high", size: "1024x1024" } },
    ],
  },
];

const TIERS = [undefined, "default", "flex", "priority", "scale", "batch", "fast", "unheard-of"];
const QUALITIES = [undefined, "low", "high", "auto", "unheard-of"];
const SIZES = [undefined, "1024x1024", "auto", "999x999"];
const circumstances = fc.record({
  tier: fc.constantFrom(...TIERS),
  quality: fc.constantFrom(...QUALITIES),
  size: fc.constantFrom(...SIZES),
  at: fc.constant(Date.UTC(2026, 10, 28)),
  pricingAttributes: fc.constantFrom(
    {},
    { inference_geo: "us" },
    { region: "eu" },
    { speed: "fast" },
  ),
}) as fc.Arbitrary<PricingContext>;

const usages = fc.record(
  Object.fromEntries(UNITS.map((unit) => [unit, fc.oneof(fc.nat(20), fc.nat(2_000_000))])) as {
    [U in Unit]: fc.Arbitrary<number>;
  },
  { requiredKeys: [] },
) as fc.Arbitrary<Usage>;

/** Without this unit, and without equivalent ones. */
function without(usage: Usage, unit: Unit): Usage {
  const gone = EQUIVALENT_UNITS.find((units) => units.includes(unit)) ?? [unit];
  return Object.fromEntries(Object.entries(usage).filter(([u]) => !gone.includes(u as Unit)));
}

it("cost(usage) >= cost(usage without any one unit): all units, built-in prices, tiers, and variants", () => {
  expect(SHAPES.length).toBeGreaterThan(40);
  for (const price of [...SHAPES, ...OWN])
    fc.assert(
      fc.property(usages, circumstances, (usage, c) => {
        const whole = calculateCost(usage, price, c)!;
        for (const unit of UNITS) {
          // A part of the output, not an additional count: its own rate may be lower.
          if (unit === "reasoning" || usage[unit] === undefined) continue;
          const rest = calculateCost(without(usage, unit), price, c)!;
          expect(whole >= rest, `${unit} of ${JSON.stringify(usage)}: ${whole} < ${rest}`).toBe(
            true,
          );
        }
      }),
      { numRuns: 4 },
    );
});

it("a priced count never becomes free through another count", () => {
  for (const price of [...SHAPES, ...OWN])
    for (const line of price.lines)
      for (const unit of line.usd === "0" ? [] : UNITS) {
        const own = {
          [line.unit]: 1_000_000,
          ...(line.unit === "reasoning" && { output: 1_000_000 }),
        };
        const bill = calculateBill({ [unit]: 1_000_000, ...own }, price, {
          at: Date.UTC(2026, 10, 28),
          ...line.variant,
        });
        expect(bill, `${line.unit} beside ${unit}`).not.toBeNull();
        if (line.unit !== "requests") expect(bill!.nano).toBeGreaterThan(0n);
      }
});

it("a bill is exact only if each count has its own rate", () => {
  for (const price of SHAPES)
    fc.assert(
      fc.property(usages, circumstances, (usage, c) => {
        const bill = calculateBill(usage, price, c)!;
        if (!isExact(bill)) return;
        const units = new Set(bill.lines.map(({ unit }) => unit));
        const tokens = bill.lines.some(({ unit }) => unit === "input" || unit === "output");
        for (const unit of ["input", "output", "searches", "code_sessions"] as const)
          if ((usage[unit] ?? 0) > 0 && (tokens || unit === "searches"))
            expect(
              units.has(unit) || (unit === "output" && units.has("reasoning")),
              `${unit} of ${JSON.stringify(usage)}`,
            ).toBe(true);
      }),
      { numRuns: 4 },
    );
});

it("of cumulative reports, the largest counts are used, whatever the last one states", () => {
  fc.assert(
    fc.property(
      fc.array(usages, { minLength: 1, maxLength: 5 }),
      fc.constantFrom(...SHAPES),
      (reports, price) => {
        const end = reports.reduce(mergeReports);
        const zeros = Object.fromEntries(UNITS.map((unit) => [unit, 0]));
        expect(mergeReports(end, zeros)).toMatchObject(end);
        expect(calculateCost(mergeReports(end, {}), price)).toBe(calculateCost(end, price));
      },
    ),
  );
});
