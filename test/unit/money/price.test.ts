import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import { roundHalfEven, addFractions } from "../../../src/money/decimal.ts";
import {
  calculateBill,
  calculateCost,
  FREE,
  priceHash,
  type PricingContext,
} from "../../../src/money/price.ts";
import type { Price, PriceLine } from "../../../src/model/facts.ts";
import { UNITS, type Unit, type Usage } from "../../../src/model/usage.ts";

const per1M = (usd: Partial<Record<Unit, string>>): PriceLine[] =>
  Object.entries(usd).map(([unit, usd]) => ({ unit: unit as Unit, usd, per: 1_000_000 }));
const each = (unit: Unit, usd: string, variant?: PriceLine["variant"]): PriceLine => ({
  unit,
  usd,
  per: 1,
  variant,
});

const mini: Price = { lines: per1M({ input: "0.15", cache_read: "0.075", output: "0.6" }) };
const opus: Price = {
  lines: per1M({
    input: "5",
    cache_read: "0.5",
    cache_write_5m: "6.25",
    cache_write_1h: "10",
    output: "25",
  }),
  multipliers: [
    { when: { inference_geo: "us" }, by: "1.1" },
    { when: { speed: "fast" }, by: "6" },
  ],
};
const long: Price = {
  lines: per1M({ input: "2.5", cache_read: "0.25", output: "15" }),
  over: [{ input: 272_000, lines: per1M({ input: "5", cache_read: "0.5", output: "22.5" }) }],
  tiers: {
    flex: per1M({ input: "1.25", cache_read: "0.13", output: "7.5" }),
    priority: per1M({ input: "5", cache_read: "0.5", output: "30" }),
  },
};
/** The bracket of one tier is not in proportion. */
const uneven: Price = {
  ...long,
  over: [
    {
      ...long.over![0]!,
      tiers: { priority: per1M({ input: "12" }), scale: per1M({ output: "50" }) },
    },
  ],
};
const steps: Price = {
  lines: per1M({ input: "1", output: "4" }),
  over: [
    { input: 200_000, lines: per1M({ input: "4" }) },
    { input: 100_000, lines: per1M({ input: "2", output: "8" }) },
  ],
};
const sonar: Price = {
  lines: [...per1M({ input: "2", output: "8", reasoning: "3" }), each("searches", "0.005")],
};
const fee: Price = { lines: [...per1M({ input: "1", output: "1" }), each("requests", "0.008")] };
const klein: Price = {
  lines: [each("megapixels", "0.014", { first: true }), each("megapixels", "0.001")],
};
const flux: Price = { lines: [each("images", "0.04")] };
const card: Price = {
  lines: [
    each("images", "0.011", { quality: "low", size: "1024x1024" }),
    each("images", "0.042", { quality: "medium" }),
    each("images", "0.063", { quality: "medium", size: "1024x1536" }),
    each("images", "0.25"),
  ],
};
const drawn: Price = {
  lines: per1M({ input: "5", image_in: "8", cache_read: "1.25", image_out: "30" }),
};
const voice: Price = {
  lines: per1M({ input: "0.3", audio_in: "1", output: "2.5", audio_out: "10" }),
};
const clip: Price = { lines: [each("seconds", "0.0015")] };
const promotion: Price = {
  lines: per1M({ input: "0.75", output: "3.75" }),
  until: "2026-12-31",
  otherwise: { from: "2027-01-01", lines: per1M({ input: "1.5", output: "7.5" }) },
};
const night: Price = {
  lines: per1M({ input: "0.135", output: "0.55" }),
  hours: { from: "16:30", to: "00:30" },
  otherwise: { lines: per1M({ input: "0.27", output: "1.1" }) },
};
const tiny: Price = { lines: per1M({ input: "0.0025", output: "0.000001" }) };

const december = Date.UTC(2026, 11, 31, 23, 59, 59);

/** Description, usage, price, and the nano-dollars calculated by hand, with other conditions. */
const worked: [string, Usage, Price, bigint | null, PricingContext?][] = [
  ["a small chat", { input: 1_000, output: 500 }, mini, 150_000n + 300_000n],
  ["one token of each", { input: 1, output: 1 }, mini, 750n],
  ["nothing", {}, mini, 0n],
  ["reported as zero", { input: 0, output: 0, searches: 0 }, mini, 0n],
  [
    "a cached prompt",
    { input: 100, cache_read: 900, output: 10 },
    mini,
    15_000n + 67_500n + 6_000n,
  ],
  [
    "cache written for five minutes",
    { input: 10, cache_write_5m: 2_000, output: 1 },
    opus,
    50_000n + 12_500_000n + 25_000n,
  ],
  ["cache written for an hour", { cache_write_1h: 2_000 }, opus, 20_000_000n],
  [
    "thirty minutes have no line: of two neighbours the longer",
    { cache_write_30m: 1_000 },
    opus,
    10_000_000n,
  ],
  ["twelve hours have no line: an hour is nearest", { cache_write_12h: 1_000 }, opus, 10_000_000n],
  ["no lifetime has a line: as input", { input: 5, cache_write_5m: 1 }, mini, 6n * 150n],
  ["a cache read without a line: as input", { cache_read: 4 }, steps, 4_000n],
  [
    "in-region, a tenth more",
    { input: 1_000, output: 1_000 },
    opus,
    33_000_000n,
    { pricingAttributes: { inference_geo: "us" } },
  ],
  [
    "fast, six times",
    { input: 1, output: 1 },
    opus,
    180_000n,
    { pricingAttributes: { speed: "fast" } },
  ],
  [
    "fast and in-region",
    { input: 1, output: 1 },
    opus,
    198_000n,
    { pricingAttributes: { speed: "fast", inference_geo: "us" } },
  ],
  [
    "elsewhere and slow",
    { input: 1, output: 1 },
    opus,
    30_000n,
    { pricingAttributes: { speed: "slow", inference_geo: "eu" } },
  ],
  ["at the bracket's edge: still the low price", { input: 272_000 }, long, 680_000_000n],
  ["one token more: all of it at the high price", { input: 272_001 }, long, 1_360_005_000n],
  [
    "cached input counts towards the bracket",
    { input: 1, cache_read: 272_000, output: 2 },
    long,
    5_000n + 136_000_000n + 45_000n,
  ],
  [
    "flex",
    { input: 1_000, cache_read: 100, output: 10 },
    long,
    1_250_000n + 13_000n + 75_000n,
    { tier: "flex" },
  ],
  ["priority", { input: 1_000, output: 10 }, long, 5_000_000n + 300_000n, { tier: "priority" }],
  ["the standard tier by each of its names", { input: 2 }, long, 5_000n, { tier: "default" }],
  [
    "flex beyond the bracket: raised as the plain price is",
    { input: 300_000, output: 1_000 },
    long,
    750_000_000n + 11_250_000n,
    { tier: "flex" },
  ],
  [
    "a tier that is not listed: the highest listed rate",
    { input: 1, output: 1 },
    long,
    35_000n,
    { tier: "warp" },
  ],
  ["a tier where none is listed: the plain rate", { input: 1 }, mini, 150n, { tier: "warp" }],
  ["two brackets, the middle", { input: 150_000, output: 1_000 }, steps, 300_000_000n + 8_000_000n],
  [
    "two brackets, the top; what it does not name is as below",
    { input: 250_000, output: 1_000 },
    steps,
    1_000_000_000n + 4_000_000n,
  ],
  ["reasoning is inside output", { input: 1, output: 100, reasoning: 80 }, mini, 150n + 60_000n],
  [
    "reasoning with a line of its own, never twice",
    { input: 1_000, output: 100, reasoning: 80 },
    sonar,
    2_000_000n + 20n * 8_000n + 80n * 3_000n,
  ],
  ["a search", { input: 0, output: 0, searches: 3 }, sonar, 15_000_000n],
  ["a search without a line: 10,000 tokens", { input: 1, searches: 1 }, mini, 150n + 1_500_000n],
  ["a tool run without a line: as a search", { tool_runs: 2 }, sonar, 40_000_000n],
  ["a fee for each call", { input: 10, output: 10 }, fee, 8_020_000n],
  ["a fee, counted", { requests: 2 }, fee, 16_000_000n],
  ["a request counted where none is charged", { input: 1, requests: 1 }, mini, 150n],
  ["a picture", { images: 3 }, flux, 120_000_000n],
  [
    "the particular line wins",
    { images: 2 },
    card,
    126_000_000n,
    { quality: "medium", size: "1024x1536" },
  ],
  [
    "the less particular line",
    { images: 1 },
    card,
    42_000_000n,
    { quality: "medium", size: "512x512" },
  ],
  [
    "the line for all others",
    { images: 1 },
    card,
    250_000_000n,
    { quality: "high", size: "1024x1024" },
  ],
  [
    "the first megapixel and the rest, of one picture",
    { images: 1, megapixels: 4 },
    klein,
    17_000_000n,
  ],
  ["the first megapixel of each of two pictures", { images: 2, megapixels: 4 }, klein, 30_000_000n],
  ["a fraction of a megapixel", { images: 1, megapixels: 1.048576 }, klein, 14_048_576n],
  [
    "a picture billed in tokens, its piece counted too",
    { input: 50, images: 1, image_out: 4_160 },
    drawn,
    250_000n + 124_800_000n,
  ],
  [
    "a picture billed in tokens, whose tokens nobody counted: 8,192 tokens",
    { input: 50, images: 1 },
    drawn,
    250_000n + 8_192n * 30_000n,
  ],
  [
    "sound in and out",
    { input: 10, audio_in: 100, output: 5, audio_out: 50 },
    voice,
    3_000n + 100_000n + 12_500n + 500_000n,
  ],
  ["seconds and a half", { seconds: 7.5 }, clip, 11_250_000n],
  [
    "the last second of a promotion",
    { input: 1_000, output: 1_000 },
    promotion,
    4_500_000n,
    { at: december },
  ],
  [
    "the first second after it",
    { input: 1_000, output: 1_000 },
    promotion,
    9_000_000n,
    { at: december + 1_000 },
  ],
  ["at night", { input: 1_000 }, night, 135_000n, { at: Date.UTC(2026, 0, 5, 16, 30) }],
  [
    "after midnight, still at night",
    { input: 1_000 },
    night,
    135_000n,
    { at: Date.UTC(2026, 0, 6, 0, 29) },
  ],
  ["in the morning", { input: 1_000 }, night, 270_000n, { at: Date.UTC(2026, 0, 6, 0, 30) }],
  [
    "a bracket with a line for the tier",
    { input: 300_000, output: 10 },
    uneven,
    300_000n * 12_000n + 10n * 45_000n,
    { tier: "priority" },
  ],
  [
    "a bracket with a line for another tier: in proportion",
    { input: 300_000 },
    uneven,
    300_000n * 2_500n,
    { tier: "flex" },
  ],
  [
    "a tier that only a bracket lists",
    { input: 300_000, output: 10 },
    uneven,
    300_000n * 5_000n + 10n * 50_000n,
    { tier: "scale" },
  ],
  [
    "the same tier below the bracket: the highest rate of any tier",
    { input: 10 },
    uneven,
    50_000n,
    { tier: "scale" },
  ],
  ["half a nano-dollar goes to the even one: down", { input: 1 }, tiny, 2n],
  ["half a nano-dollar goes to the even one: up", { input: 3 }, tiny, 8n],
  ["on a hold, up", { input: 1 }, tiny, 3n, { round: "ceil" }],
  ["a pico-dollar on a hold", { output: 1 }, tiny, 1n, { round: "ceil" }],
  [
    "free says zero, of everything",
    { input: 1e9, images: 5, searches: 2 },
    FREE,
    0n,
    { tier: "any" },
  ],
  ["audio without a line: as input", { audio_in: 1 }, mini, 150n],
  [
    "a size and quality that are not known: the highest variant",
    { images: 1 },
    { lines: card.lines.slice(0, 3) },
    63_000_000n,
  ],
  ["tokens where a price lists only pieces", { input: 900, images: 1 }, flux, 40_000_000n],
  ["a count that is none", { input: Number.NaN }, mini, null],
  ["a negative count", { output: -1 }, mini, null],
  [
    "more than a float can say",
    { input: 2 ** 53 - 1, output: 2 ** 53 - 1 },
    opus,
    (5_000n + 25_000n) * (2n ** 53n - 1n),
  ],
];

describe("worked examples", () => {
  for (const [what, usage, price, nano, circumstances] of worked)
    it(what, () => expect(calculateCost(usage, price, circumstances)).toBe(nano));
});

const usd = fc
  .tuple(fc.bigInt(0n, 10n ** 12n), fc.integer({ min: 0, max: 6 }))
  .map(([n, places]) => {
    const digits = n.toString().padStart(places + 1, "0");
    return places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`;
  });
const TOKENS = UNITS.filter((unit) => unit !== "requests" && unit !== "reasoning");
const anyPrice = fc.tuple(...TOKENS.map(() => usd)).map((amounts): Price => ({
  lines: amounts.map((usd, i) => ({ unit: TOKENS[i]!, usd, per: 1_000_000 })),
}));
const anyUsage = fc.record(
  Object.fromEntries(TOKENS.map((unit) => [unit, fc.nat(2 ** 40)])) as Record<
    string,
    fc.Arbitrary<number>
  >,
  { requiredKeys: [] },
) as fc.Arbitrary<Usage>;

describe("laws", () => {
  it("no float is used between a count and its price", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 15n), fc.maxSafeNat(), (pico, count) => {
        const digits = pico.toString().padStart(7, "0");
        const price: Price = {
          lines: per1M({ input: `${digits.slice(0, -6)}.${digits.slice(-6)}` }),
        };
        const exact = pico * BigInt(count);
        const nano = calculateCost({ input: count }, price)!;
        const twice = 2n * (exact - nano * 1_000n);
        expect(twice >= -1_000n && twice <= 1_000n).toBe(true);
        if (twice === 1_000n || twice === -1_000n) expect(nano % 2n).toBe(0n);
      }),
    );
  });

  it("the bill is the sum of its lines, rounded once", () => {
    fc.assert(
      fc.property(anyUsage, anyPrice, (usage, price) => {
        const parts = calculateBill(usage, price)!.lines;
        const sum = parts.map(({ nano }) => nano).reduce(addFractions, { n: 0n, d: 1n });
        expect(calculateCost(usage, price)).toBe(roundHalfEven(sum));
      }),
    );
  });

  it("parts together cost the same as the whole, except for rounding", () => {
    fc.assert(
      fc.property(anyUsage, anyPrice, (usage, price) => {
        const apart = Object.entries(usage).map(([unit, count]) =>
          calculateCost({ [unit]: count }, price)!,
        );
        const difference = calculateCost(usage, price)! - apart.reduce((a, b) => a + b, 0n);
        const most = BigInt(apart.length);
        expect(difference <= most && difference >= -most).toBe(true);
      }),
    );
  });

  it("a larger count never costs less", () => {
    fc.assert(
      fc.property(
        anyUsage,
        anyPrice,
        fc.constantFrom(...TOKENS),
        fc.nat(1e6),
        (usage, price, unit, more) => {
          const bigger = { ...usage, [unit]: (usage[unit] ?? 0) + more };
          expect(calculateCost(bigger, price)! >= calculateCost(usage, price)!).toBe(true);
        },
      ),
    );
  });

  it("a reservation is never below the bill, nor a nano-dollar above it", () => {
    fc.assert(
      fc.property(anyUsage, anyPrice, (usage, price) => {
        const difference =
          calculateCost(usage, price, { round: "ceil" })! - calculateCost(usage, price)!;
        expect(difference === 0n || difference === 1n).toBe(true);
      }),
    );
  });

  it("a counted unit without a price is reported, and the cost of the rest is added", () => {
    fc.assert(
      fc.property(
        anyUsage,
        anyPrice,
        fc.constantFrom<Unit>("searches", "seconds", "output", "audio_in", "code_sessions"),
        (usage, price, unit) => {
          const without = { lines: price.lines.filter((line) => line.unit !== unit) };
          const alone = { ...usage, audio_in: undefined, seconds: undefined };
          const bill = calculateBill({ ...alone, [unit]: 1 }, without)!;
          expect(bill.unpricedUnits).toEqual([unit]);
          expect(bill.nano >= calculateCost({ ...alone, [unit]: 0 }, without)!).toBe(true);
        },
      ),
    );
  });
});

describe("a price's hash", () => {
  it("depends on its content, not on the order of fields", () => {
    const a = priceHash({ lines: [{ unit: "input", usd: "1", per: 1 }], tiers: { b: [], a: [] } });
    const b = priceHash({ tiers: { a: [], b: [] }, lines: [{ per: 1, usd: "1", unit: "input" }] });
    expect(a).toBe(b);
    expect(a).toMatch(/^[0-9a-f]{32}$/);
  });
  it("differs if the content differs", () => {
    expect(priceHash(mini)).not.toBe(priceHash(opus));
    expect(priceHash({ lines: [] })).not.toBe(priceHash({ lines: [], until: "2026-01-01" }));
  });
});

it("a price with digits below a pico-dollar is rejected, not rounded", () => {
  expect(() => calculateCost({ input: 1 }, { lines: per1M({ input: "0.0000001" }) })).toThrow(
    /decimal/,
  );
  expect(() => calculateCost({ input: 1 }, { lines: per1M({ input: "1e-7" }) })).toThrow(/decimal/);
});
