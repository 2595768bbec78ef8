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

describe("an answer in one piece", () => {
  it("of another model that has a price is paid at that", () => {
    expect(ask("big")).toEqual(other);
    expect(ask("big-2026-05-28")).toEqual(other);
  });
  it("is the called model's when nobody knows the name, or it is the same model under another", () => {
    for (const name of [undefined, "auto", "auto-2026-05-28", "unheard-of"])
      expect(ask(name)).toBe(own);
    expect(
      findReportPrice("big-mini", { model: "big", price: own, shelf: shelf(), alone: true }),
    ).toBe(own);
  });
  it("is the called model's where the operator has set its price", () => {
    expect(ask("big", { shelf: shelf(true) })).toBe(own);
  });
});

it("of several pieces, each is its own model's or has no price", () => {
  expect(ask("big", { alone: false, shelf: shelf(true) })).toEqual(other);
  expect(ask("auto-20260528", { alone: false })).toBe(own);
  expect(ask("unheard-of", { alone: false })).toBeUndefined();
});

it("what is learned later changes no shelf that is in somebody's hands", () => {
  expect(shelf().get("big")?.info.price).toEqual(other);
});
