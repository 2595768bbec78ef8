import { imageOperation } from "../../../src/model/operations/image-operation.ts";
import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import {
  estimateHold,
  estimateInputTokens,
  maxOutputForBudget,
  type HoldRequest,
} from "../../../src/money/estimate.ts";
import { calculateCost, FREE } from "../../../src/money/price.ts";
import { createOutputHistory } from "../../../src/money/output-history.ts";
import type { Price } from "../../../src/model/facts.ts";

const opus: Price = {
  lines: [
    { unit: "input", usd: "5", per: 1_000_000 },
    { unit: "cache_read", usd: "0.5", per: 1_000_000 },
    { unit: "cache_write_1h", usd: "10", per: 1_000_000 },
    { unit: "output", usd: "25", per: 1_000_000 },
  ],
  over: [{ input: 200_000, lines: [{ unit: "output", usd: "37.5", per: 1_000_000 }] }],
};
const ask = (more: Partial<HoldRequest> = {}): HoldRequest => ({
  budgetMode: "expected",
  price: opus,
  input: 1_000,
  ...more,
});

describe("the input estimate", () => {
  it("is a third of the bytes, rounded up", () => {
    expect(estimateInputTokens({ bytes: 0 })).toBe(0);
    expect(estimateInputTokens({ bytes: 1 })).toBe(1);
    expect(estimateInputTokens({ bytes: 3_000 })).toBe(1_000);
  });
  it("counts media by the item and not by their bytes", () => {
    expect(estimateInputTokens({ bytes: 4_000_300, media: { count: 2, bytes: 4_000_000 } })).toBe(
      3_300,
    );
  });
  it("is at most the model's input limit", () => {
    expect(estimateInputTokens({ bytes: 9_000_000, context: 200_000 })).toBe(200_000);
  });
});

describe("a reservation", () => {
  it("expected: the estimated input, and at least 1,024 output tokens", () => {
    expect(estimateHold(ask())).toMatchObject({
      claim: 5_000_000n + 1_024n * 25_000n,
      outputPerResponse: 1_024,
    });
    expect(estimateHold(ask({ typicalOutput: 4_000 })).outputPerResponse).toBe(4_000);
    expect(estimateHold(ask({ typicalOutput: 4_000, output: 100 })).outputPerResponse).toBe(100);
  });
  it("hard: the most expensive input, and the maximum output", () => {
    const { nano, outputPerResponse } = estimateHold(
      ask({ budgetMode: "hard", output: 8_000, modelMaxOutput: 64_000 }),
    );
    expect(outputPerResponse).toBe(8_000);
    expect(nano).toBe(10_000_000n + 200_000_000n);
    expect(
      estimateHold(ask({ budgetMode: "hard", modelMaxOutput: 64_000 })).outputPerResponse,
    ).toBe(64_000);
    expect(
      estimateHold(ask({ budgetMode: "hard", output: 1e9, modelMaxOutput: 64_000 }))
        .outputPerResponse,
    ).toBe(64_000);
  });
  it("soft: one nano-dollar", () => {
    expect(estimateHold(ask({ budgetMode: "soft" }))).toEqual({
      ...estimateHold(ask()),
      claim: 1n,
    });
  });
  it("the row has the worst case in every mode, which recovery after a crash uses", () => {
    const worst = estimateHold(ask({ budgetMode: "hard", modelMaxOutput: 64_000 }));
    expect(worst.nano).toBe(10_000_000n + 64_000n * 25_000n);
    for (const mode of ["expected", "soft"] as const)
      expect(estimateHold(ask({ budgetMode: mode, modelMaxOutput: 64_000 }))).toMatchObject({
        nano: worst.nano,
        maxOutput: 64_000,
      });
    expect(estimateHold(ask({ modelMaxOutput: 64_000, output: 500, n: 3 }))).toMatchObject({
      nano: 10_000_000n + 1_500n * 25_000n,
      maxOutput: 1_500,
    });
  });
  it("is unknown if the price is", () => {
    expect(estimateHold(ask({ price: null, budgetMode: "hard", output: 5 }))).toEqual({
      nano: null,
      claim: null,
      unpricedUnits: [],
      unknownTier: undefined,
      outputPerResponse: 5,
      maxOutput: 5,
    });
  });
  it("names units and tier without a price", () => {
    expect(estimateHold(ask({ tier: "warp" }))).toMatchObject({
      unpricedUnits: [],
      unknownTier: "warp",
    });
    for (const mode of ["hard", "expected", "soft"] as const)
      expect(
        estimateHold(ask({ budgetMode: mode, toolRuns: 3, tools: ["searches"] })).unpricedUnits,
      ).toEqual(["searches"]);
    const priced: Price = { lines: [...opus.lines, { unit: "searches", usd: "0.01", per: 1 }] };
    const of = { budgetMode: "hard", output: 0, input: 0, price: priced, toolRuns: 3 } as const;
    expect(estimateHold(ask({ ...of, tools: ["searches"] }))).toMatchObject({
      nano: 30_000_000n,
      unpricedUnits: [],
    });
  });
  it("is zero for a free model", () => {
    expect(estimateHold(ask({ price: FREE, budgetMode: "hard" })).claim).toBe(0n);
  });
  it("covers every requested choice", () => {
    const one = estimateHold(ask({ budgetMode: "hard", output: 100, input: 0 })).nano!;
    expect(estimateHold(ask({ budgetMode: "hard", output: 100, input: 0, n: 3 })).nano).toBe(
      3n * one,
    );
  });
  it("counts images by the unit of the price", () => {
    const image = { operationSpec: imageOperation, n: 2, input: 30, size: "2048x1024" } as const;
    const each: Price = { lines: [{ unit: "images", usd: "0.04", per: 1 }] };
    expect(estimateHold(ask({ ...image, price: each })).nano).toBe(80_000_000n);
    const area: Price = { lines: [{ unit: "megapixels", usd: "0.01", per: 1 }] };
    expect(estimateHold(ask({ ...image, price: area })).nano).toBe(60_000_000n);
    const tokens: Price = {
      lines: [
        { unit: "input", usd: "5", per: 1_000_000 },
        { unit: "image_out", usd: "30", per: 1_000_000 },
      ],
    };
    expect(estimateHold(ask({ ...image, price: tokens })).nano).toBe(
      150_000n + 2n * 10_923n * 30_000n,
    );
  });
  it("uses the highest price for an image of unknown size", () => {
    const images = (usd: string, variant?: { quality?: string; size?: string }) =>
      ({ unit: "images", usd, per: 1, variant }) as const;
    const price: Price = {
      lines: [
        images("0.01", { quality: "low" }),
        images("0.04", { quality: "medium", size: "1024x1024" }),
        images("0.17", { quality: "high", size: "1024x1024" }),
        images("0.25", { quality: "high", size: "1536x1024" }),
      ],
    };
    const held = (more: Partial<HoldRequest>) =>
      estimateHold(ask({ operationSpec: imageOperation, n: 2, price, ...more })).nano;
    expect(held({})).toBe(500_000_000n);
    expect(held({ quality: "auto", size: "auto" })).toBe(500_000_000n);
    expect(held({ size: "1024x1024" })).toBe(340_000_000n);
    expect(held({ quality: "low" })).toBe(20_000_000n);
    expect(held({ quality: "medium", size: "1024x1024" })).toBe(80_000_000n);
    // An unlisted size: its bill is unknown.
    expect(held({ quality: "medium", size: "999x999" })).toBe(500_000_000n);
    // The plain price is no bound if upstream may choose a more expensive variant.
    const plain: Price = { lines: [images("0.04"), images("0.08", { quality: "high" })] };
    expect(held({ price: plain })).toBe(160_000_000n);
    expect(held({ price: plain, quality: "low", size: "1x1" })).toBe(80_000_000n);
  });
  it("hard is at least the bill of any response within the limit", () => {
    fc.assert(
      fc.property(
        fc.nat(400_000),
        fc.nat(20_000),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (input, output, cached, written) => {
          const held = estimateHold(ask({ budgetMode: "hard", input, output })).nano!;
          const read = Math.floor(input * cached);
          const wrote = Math.floor((input - read) * written);
          const bill = calculateCost(
            { input: input - read - wrote, cache_read: read, cache_write_1h: wrote, output },
            opus,
          )!;
          expect(held >= bill).toBe(true);
        },
      ),
    );
  });
});

describe("the suggested limit", () => {
  it("fits, and one more token does not", () => {
    fc.assert(
      fc.property(
        fc.bigInt(0n, 400_000_000n),
        fc.nat(20_000),
        fc.constantFrom("hard" as const, "expected" as const),
        (left, input, mode) => {
          const of = ask({ budgetMode: mode, input, output: 8_000, typicalOutput: 8_000 });
          const fits = maxOutputForBudget(left, of);
          if (fits > 0) expect(estimateHold({ ...of, output: fits }).claim! <= left).toBe(true);
          if (fits < 8_000)
            expect(estimateHold({ ...of, output: fits + 1 }).claim! > left).toBe(true);
        },
      ),
    );
  });
});

describe("the usual output", () => {
  it("is the p95 of recent responses, if there are enough", () => {
    const usual = createOutputHistory();
    for (let i = 1; i <= 7; i++) usual.record("a", i);
    expect(usual.p95("a")).toBeUndefined();
    for (let i = 8; i <= 100; i++) usual.record("a", i);
    expect(usual.p95("a")).toBe(96);
    expect(usual.p95("b")).toBeUndefined();
  });
  it("evicts the model that was unused for longest", () => {
    const usual = createOutputHistory(2);
    for (const who of ["a", "b"]) for (let i = 0; i < 8; i++) usual.record(who, 1);
    usual.record("a", 1);
    usual.record("c", 1);
    expect(usual.p95("a")).toBe(1);
    expect(usual.p95("b")).toBeUndefined();
  });
});
