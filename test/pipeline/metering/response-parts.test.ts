import { describe, expect, it } from "vitest";
import { createCatalog } from "../../../src/catalog/catalog.ts";
import type { Price } from "../../../src/model/facts.ts";
import { findReportPrice } from "../../../src/pipeline/metering/call-pricing.ts";

const price = (usd: string): Price => ({ lines: [{ unit: "output", usd, per: 1_000_000 }] });
const [own, other] = [price("1"), price("2")];

function shelf(operator = false) {
  const models = ["auto", "big", "big-mini"].map((model) => ({
    model,
    operation: "chat" as const,
    price: model === "auto" ? own : other,
  }));
  const set = operator ? new Map([["auto", { price: own }]]) : undefined;
  const catalog = createCatalog({
    providers: new Map([["p", { operator: set, shipped: { asOf: "2026-11-01", models } }]]),
  });
  return catalog.entriesOf("p");
}
const ask = (of: string | undefined, more: object = {}) =>
  findReportPrice(of, { model: "auto", price: own, shelf: shelf(), alone: true, ...more });

describe("a response in one part", () => {
  it("from another model with a price is billed at that price", () => {
    expect(ask("big")).toEqual(other);
    expect(ask("big-2026-05-28")).toEqual(other);
  });
  it("is billed as the called model if the name is unknown, or is the same model under another name", () => {
    for (const name of [undefined, "auto", "auto-2026-05-28", "unheard-of"])
      expect(ask(name)).toBe(own);
    expect(
      findReportPrice("big-mini", { model: "big", price: own, shelf: shelf(), alone: true }),
    ).toBe(own);
  });
  it("is billed as the called model if the operator has set its price", () => {
    expect(ask("big", { shelf: shelf(true) })).toBe(own);
  });
});

it("with several parts is billed at each part's own model, or has no price", () => {
  expect(ask("big", { alone: false, shelf: shelf(true) })).toEqual(other);
  expect(ask("auto-20260528", { alone: false })).toBe(own);
  expect(ask("unheard-of", { alone: false })).toBeUndefined();
});

it("a later price does not change a price list in use", () => {
  expect(shelf().get("big")?.info.price).toEqual(other);
});
