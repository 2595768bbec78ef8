// The cheapest candidate is tried first for any prices, and no candidate is lost.
import * as fc from "fast-check";
import type { Candidate } from "tollgate/plugin";
import { createTestContext, fakes, startGateway } from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { expect, test } from "vitest";
import plugin from "../src/index.ts";

testConformance(plugin, { module: new URL("../src/index.ts", import.meta.url) });

test("sorts any candidates by cost, keeps the order of near costs, and puts unknown prices last", async () => {
  const price = fc.option(fc.bigInt(0n, 1_000n), { nil: null });
  const options = {
    within_percent: fc.integer({ min: 0, max: 100 }),
    unpriced: fc.constantFrom("last", "never"),
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(price, { maxLength: 8 }),
      fc.record(options),
      async (prices, given) => {
        const list = prices.map((_cost, n) => fakes.candidate({ id: `up/${n}` }));
        const costs = new Map(list.map((one, n) => [one.id, prices[n]!]));
        await using lent = createTestContext({
          price: (one) => costs.get((one as Candidate).id) ?? null,
        });
        const { route } = await plugin.setup(given as never, lent.ctx);
        const made = await route!(list, fakes.exchange());
        expect(made).toHaveLength(list.length);
        const kept = made.filter((one) => "id" in one).map(({ id }) => id);
        expect(new Set(kept).size).toBe(kept.length);
        const known = kept.map((id) => costs.get(id)!).filter((cost) => cost !== null);
        const least = known.reduce((min, cost) => (cost < min ? cost : min), known[0] ?? 0n);
        const near = least + (least * BigInt(given.within_percent)) / 100n;
        const ranks = known.map((cost) => (cost <= near ? near : cost));
        expect(ranks).toEqual(ranks.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
        const first = kept.filter((id) => costs.get(id) !== null && costs.get(id)! <= near);
        expect(first).toEqual(list.map(({ id }) => id).filter((id) => first.includes(id)));
        const unknown = kept.slice(known.length).map((id) => costs.get(id));
        expect(unknown.every((cost) => cost === null)).toBe(true);
        if (given.unpriced === "never") expect(unknown).toEqual([]);
      },
    ),
  );
});

const priced = (usd: string) => ({
  use: "openai-compatible",
  with: { base_url: "${env:UPSTREAM}/v1" },
  models: { model: { price: { input: usd, output: usd } } },
});

test("in a gateway, the cheaper of two candidates responds, and a too expensive one is never called", async () => {
  const house = (options: object) =>
    startGateway({
      plugins: { "cost-routing": plugin },
      config: {
        middleware: ["door", { use: "cost-routing", with: options }],
        providers: { dear: priced("30"), cheap: priced("1") },
        models: { fast: { candidates: ["dear/model", "cheap/model"] } },
      },
    });
  await using at = await house({});
  expect((await at.ask("fast", "Hi")).status).toBe(200);
  expect(at.calls.map(({ provider }) => provider)).toEqual(["cheap"]);
  expect(await at.runCommand("middleware.cost-routing", "expected")).toEqual({
    fast: expect.any(Number),
  });
  await using poor = await house({ max_usd: 0.000_000_001 });
  const got = await poor.ask("fast", "Hi");
  expect([got.status, got.error?.code]).toEqual([403, "too_expensive"]);
  expect(poor.calls).toEqual([]);
});
