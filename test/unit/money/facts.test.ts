import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import { calculateCost, picoDollarsPerUnit, priceHash } from "../../../src/money/price.ts";
import { UNITS, type Unit } from "../../../src/model/usage.ts";
import type { Facts, Price } from "../../../src/model/facts.ts";
import { files, priceOf, readList, TARGET } from "../../../.build/facts.ts";

const root = new URL("../../..", import.meta.url).pathname;
const shipped = readdirSync(TARGET)
  .filter((name) => name.endsWith(".json"))
  .map((name) => {
    const text = readFileSync(join(TARGET, name), "utf8");
    return { provider: name.replace(/\.json$/, ""), text, facts: JSON.parse(text) as Facts };
  });
const schema = JSON.parse(readFileSync(join(root, "schemas/price.schema.json"), "utf8"));
const valid = new Ajv({ strict: true, allErrors: true, strictRequired: false }).compile(schema);
const every = shipped.flatMap(({ facts }) => facts.models);

/** Some providers offer these for free. */
const TOOLS: readonly Unit[] = [
  "searches",
  "map_searches",
  "fetches",
  "file_searches",
  "code_sessions",
];

describe("built-in facts", () => {
  it("equal the list: after a change of it, run `node .build/facts.ts`", () => {
    const made = files(readList());
    expect([...made.keys()].sort()).toEqual(shipped.map(({ provider }) => provider));
    for (const { provider, text } of shipped) expect(text, provider).toBe(made.get(provider));
  });

  it("have prices that the schema and the billing code accept", () => {
    const priced = every.filter(({ price }) => price);
    expect(priced.length).toBeGreaterThan(230);
    for (const { model, price } of priced) {
      expect(valid(price), `${model}: ${JSON.stringify(valid.errors)}`).toBe(true);
      const lines = [
        price!.lines,
        ...(price!.over ?? []).map((over) => over.lines),
        ...Object.values(price!.tiers ?? {}),
        ...(price!.otherwise ? [price!.otherwise.lines] : []),
      ].flat();
      for (const line of lines)
        if (!TOOLS.includes(line.unit)) expect(picoDollarsPerUnit(line), model).toBeGreaterThan(0n);
      expect(priceHash(price!)).toMatch(/^[0-9a-f]{32}$/);
    }
  });

  it("name each model once, and inherit prices only from models with one", () => {
    for (const { provider, facts } of shipped) {
      const names = facts.models.map(({ model }) => model);
      expect(new Set(names).size, provider).toBe(names.length);
      for (const { pricedAs } of facts.models)
        if (pricedAs !== undefined)
          expect(facts.models.find(({ model }) => model === pricedAs)?.price).toBeDefined();
    }
  });

  it("contain the details of a bill", () => {
    const price = (provider: string, model: string): Price =>
      shipped.find((s) => s.provider === provider)!.facts.models.find((m) => m.model === model)!
        .price!;
    const opus = price("anthropic", "claude-opus-4-6");
    expect(calculateCost({ input: 1_000, cache_write_1h: 100, output: 10 }, opus)).toBe(
      5_000_000n + 1_000_000n + 250_000n,
    );
    expect(
      calculateCost({ output: 10 }, opus, { pricingAttributes: { inference_geo: "us" } }),
    ).toBe(275_000n);
    const flash = price("google", "gemini-3.6-flash");
    expect(calculateCost({ input: 100 }, flash, { at: Date.UTC(2026, 11, 31) })).toBe(75_000n);
    expect(calculateCost({ input: 100 }, flash, { at: Date.UTC(2027, 0, 1) })).toBe(150_000n);
    const long = price("openai", "gpt-5.4");
    expect(calculateCost({ input: 272_001 }, long)).toBe(272_001n * 5_000n);
    expect(calculateCost({ input: 1, cache_read: 100 }, long, { tier: "flex" })).toBe(
      1_250n + 13_000n,
    );
    expect(calculateCost({ image_out: 1_000 }, price("openai", "gpt-image-2"))).toBe(30_000_000n);
  });
});

it("never convert a number of the list to a float", () => {
  fc.assert(
    fc.property(fc.bigInt(1n, 10n ** 30n), (n) => {
      const digits = `${n}.${n}0`;
      const text = `{"models":[{"provider":"p","model":"m","kind":"chat","as_of":"2026-01-01","price":{"input":${digits},"output":1.50}}]}`;
      const [listed] = readList(text);
      const [input, output] = priceOf(listed!)!.lines;
      expect(input!.usd).toBe(digits);
      expect(output!.usd).toBe("1.50");
    }),
  );
});

describe("the price schema", () => {
  const line = (more: object): unknown => ({
    lines: [{ unit: "input", usd: "1", per: 1, ...more }],
  });
  it("includes every unit", () => {
    expect(schema.definitions.line.properties.unit.enum).toEqual([...UNITS]);
  });
  it("rejects what the billing code rejects", () => {
    for (const bad of [
      {},
      line({ usd: 1 }),
      line({ usd: "1e-6" }),
      line({ usd: "-1" }),
      line({ usd: "0.1234567", per: 1_000_000 }),
      line({ per: 1_000 }),
      line({ unit: "tokens" }),
      line({ variant: {} }),
      { lines: [], from: "tomorrow" },
      { lines: [], hours: { from: "24:00", to: "08:00" } },
      { lines: [], otherwise: {} },
      { lines: [], multipliers: [{ when: {}, by: "2" }] },
    ])
      expect(valid(bad), JSON.stringify(bad)).toBe(false);
  });
  it("accepts what the billing code accepts", () => {
    for (const good of [
      line({}),
      line({ usd: "0.123456789012" }),
      line({ usd: "0.123456", per: 1_000_000 }),
      { lines: [], tiers: { "*": [] }, until: "2026-12-31", otherwise: { lines: [] } },
    ])
      expect(valid(good), JSON.stringify(valid.errors)).toBe(true);
  });
});
