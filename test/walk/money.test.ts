// What a call is priced with: the moment of its reserve, and the terms that upstream reports or, failing that, were asked.
import { describe, expect, it } from "vitest";
import type { ModelEvent, Price, Reserve, Settle, UsageSeen } from "tollgate/plugin";
import { priceHash } from "../../src/money/price.ts";
import { scene } from "./house.ts";
import { toy } from "./toy.ts";

const price: Price = {
  lines: [
    { unit: "input", usd: "1", per: 1_000_000 },
    { unit: "output", usd: "10", per: 1_000_000 },
  ],
  tiers: { flex: [{ unit: "output", usd: "5", per: 1_000_000 }] },
  multipliers: [{ when: { speed: "fast" }, by: "6" }],
};

/** An image is priced by its size and quality. */
const pictures: Price = {
  lines: [
    { unit: "images", usd: "0.04", per: 1, variant: { quality: "low" } },
    { unit: "images", usd: "0.17", per: 1, variant: { quality: "high", size: "1024x1024" } },
  ],
};

const speaking = (survey: object, seen: Partial<UsageSeen>, of: Price = price) => {
  const protocol = toy();
  return {
    frontend: {
      ...protocol,
      server: { ...protocol.server!, survey: () => ({ features: [], ...survey }) },
    },
    providers: {
      p: {
        facts: new Map([["m", { price: of }]]) as never,
        endpoints: [
          {
            kind: "chat" as const,
            async *run(): AsyncGenerator<ModelEvent> {
              yield { type: "start", id: "u1" };
              yield { type: "open", index: 0, block: { type: "text" } };
              yield { type: "delta", index: 0, text: "Hello" };
              yield { type: "close", index: 0 };
              if (seen.usage) yield { ...seen, type: "usage", usage: seen.usage };
              yield { type: "finish", reason: "stop" };
            },
          },
        ],
      },
    },
  };
};

async function billed(survey: object, seen: Partial<UsageSeen>, of?: Price) {
  await using s = await scene(speaking(survey, seen, of));
  await (await s.ask({ model: "p/m", text: "hi" })).text();
  const reserve = s.journal.find((c) => c.do === "reserve") as Reserve & { at: number };
  const settle = s.journal.find((c) => c.do === "settle") as Settle;
  return { reserve, settle };
}

describe("a call is priced", () => {
  const usage = { input: 1000, output: 100 };
  it.each([
    ["plainly", {}, {}, 2_000_000n],
    ["by the tier that upstream reports", {}, { tier: "flex" }, 1_500_000n],
    ["by the tier that was asked for, where it reports none", { tier: "flex" }, {}, 1_500_000n],
    ["by the report where the two differ", { tier: "flex" }, { tier: "default" }, 2_000_000n],
    ["with the facts that upstream reports", {}, { facts: { speed: "fast" } }, 12_000_000n],
    ["with the facts that were asked for", { facts: { speed: "fast" } }, {}, 12_000_000n],
    [
      "without the asked facts that it denies",
      { facts: { speed: "fast" } },
      { facts: { speed: "standard" } },
      2_000_000n,
    ],
  ])("%s", async (_how, survey, seen, nano) => {
    const { settle, reserve } = await billed(survey, { usage, ...seen });
    expect(settle).toMatchObject({ state: "exact", costNano: nano, usage });
    expect(reserve.price).toBe(priceHash(price));
  });

  it("as unpriced when upstream bills a tier without a price, and nothing is guessed", async () => {
    const { settle } = await billed({}, { usage, tier: "lightning" });
    expect(settle).toMatchObject({ state: "unpriced", costNano: null });
  });

  it("by the size and quality of a picture", async () => {
    const asked = { size: "1024x1024", quality: "high" };
    expect((await billed(asked, { usage: { images: 2 } }, pictures)).settle.costNano).toBe(
      340_000_000n,
    );
    const made = { usage: { images: 2 }, quality: "low" };
    expect((await billed(asked, made, pictures)).settle.costNano).toBe(80_000_000n);
  });

  it("by the day it was reserved on, however late it is settled", async () => {
    const today = new Date().toISOString().slice(0, 10);
    const dated: Price = { ...price, until: today, otherwise: { lines: [] } };
    const { settle, reserve } = await billed({}, { usage }, dated);
    expect(settle).toMatchObject({ state: "exact", costNano: 2_000_000n });
    expect(new Date(reserve.at).toISOString().slice(0, 10)).toBe(today);
  });

  it("and held with the same terms", async () => {
    const plain = (await billed({ maxOutput: 100 }, { usage })).reserve.holdNano!;
    const fast = { maxOutput: 100, facts: { speed: "fast" } };
    expect((await billed(fast, { usage })).reserve.holdNano).toBe(plain * 6n);
    expect((await billed({ maxOutput: 100, tier: "lightning" }, { usage })).reserve.holdNano).toBe(
      null,
    );
  });

  it("with pictures counted by the piece, not by their bytes", async () => {
    const bytes = { maxOutput: 1, media: { count: 1, bytes: 40 } };
    const without = (await billed({ maxOutput: 1 }, { usage })).reserve.holdNano!;
    const withOne = (await billed(bytes, { usage })).reserve.holdNano!;
    // 1,600 tokens for the picture, and its bytes are no text.
    expect(withOne - without).toBeGreaterThan(1_580_000n);
    expect(withOne - without).toBeLessThan(1_600_000n);
  });

  it("and without a report by its text", async () => {
    const { settle } = await billed({}, {});
    expect(settle).toMatchObject({ state: "estimated", usage: { output: 2 } });
  });
});

it("an expected hold learns what a key usually gets", async () => {
  await using s = await scene(speaking({}, { usage: { input: 10, output: 5_000 } }));
  for (let i = 0; i < 10; i++) await (await s.ask({ model: "p/m", text: "hi" })).text();
  const holds = s.journal.filter((c) => c.do === "reserve").map((c) => (c as Reserve).holdNano!);
  // At first the least there is; then what it turned out to be.
  expect(holds[0]).toBeLessThan(11_000_000n);
  expect(holds.at(-1)).toBeGreaterThan(50_000_000n);
});
