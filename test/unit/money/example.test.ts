import type { OperationSpec } from "../../../src/model/operations/operation-spec.ts";
import { chatOperation } from "../../../src/model/operations/chat-operation.ts";
import { imageOperation } from "../../../src/model/operations/image-operation.ts";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createPricedExample, calculateBill, FREE, isExact } from "../../../src/money/price.ts";
import type { Price, PriceLine } from "../../../src/model/facts.ts";
import { UNITS } from "../../../src/model/usage.ts";

const line = fc.record({
  unit: fc.constantFrom(...UNITS),
  usd: fc.integer({ min: 0, max: 1_000_000 }).map((n) => (n / 1_000).toFixed(3)),
  per: fc.constantFrom(1 as const, 1_000_000 as const),
}) satisfies fc.Arbitrary<PriceLine>;

describe("an example", () => {
  it("costs the same as a bill with these counts, line by line", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<OperationSpec>(chatOperation, imageOperation),
        fc.uniqueArray(line, { selector: (l) => l.unit, maxLength: 8 }),
        (work, lines) => {
          const price: Price = { lines };
          const { usage, nano, lines: billed } = createPricedExample(work, price, 0);
          const bill = calculateBill(usage, price, { at: 0 })!;
          expect(nano).toBe(isExact(bill) ? bill.nano : null);
          if (nano === null) {
            expect(billed).toEqual([]);
            return;
          }
          const sum = billed.reduce((all, { nano }) => all + nano, 0n);
          // Each line is rounded for display, and the bill once.
          expect(Math.abs(Number(sum - nano))).toBeLessThanOrEqual(billed.length);
        },
      ),
    );
  });

  it("uses the unit of the price", () => {
    const about = (unit: PriceLine["unit"], usd: string, per: 1 | 1_000_000) =>
      createPricedExample(imageOperation, { lines: [{ unit, usd, per }, ...text] }, 0);
    const text: PriceLine[] = [{ unit: "input", usd: "5", per: 1_000_000 }];
    expect(about("images", "0.04", 1)).toMatchObject({
      description: "one image",
      nano: 40_000_000n,
    });
    expect(about("megapixels", "1", 1)).toMatchObject({ nano: 1_048_576_000n });
    expect(about("image_out", "30", 1_000_000)).toMatchObject({ nano: 30_500_000n });
    expect(createPricedExample(chatOperation, FREE, 0).nano).toBe(0n);
    expect(createPricedExample(chatOperation, undefined, 0)).toMatchObject({
      nano: null,
      lines: [],
    });
  });
});
