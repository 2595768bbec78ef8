import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { merge, type FactLayer, type StatedFacts } from "../../../src/catalogue/merge.ts";
import { FREE } from "../../../src/money/price.ts";

const price = (usd: string) => ({
  lines: [{ unit: "input" as const, usd, per: 1_000_000 as const }],
});

const said: fc.Arbitrary<StatedFacts> = fc.record(
  {
    kind: fc.constantFrom("chat", "image"),
    name: fc.string(),
    price: fc.oneof(fc.constant("free" as const), fc.constantFrom("1", "2").map(price)),
    pricedAs: fc.constantFrom("a", "b"),
    can: fc.record({ tools: fc.boolean(), vision: fc.boolean() }, { requiredKeys: [] }),
    limits: fc.record({ context: fc.nat(), output: fc.nat() }, { requiredKeys: [] }),
    released: fc.constantFrom("2026-01-01", "2025-05-05"),
    protocols: fc.array(fc.constantFrom("messages", "responses")),
  },
  { requiredKeys: [] },
);
const layer: fc.Arbitrary<FactLayer> = fc.record({
  from: fc.constantFrom("operator", "live", "shipped"),
  at: fc.constantFrom("2026-11-01", "2026-11-02"),
  said,
});
/** Strongest first, as the catalogue hands them over. */
const layers = fc
  .array(layer, { maxLength: 5 })
  .map((all) =>
    all.toSorted(
      (a, b) =>
        ["operator", "live", "shipped"].indexOf(a.from) -
        ["operator", "live", "shipped"].indexOf(b.from),
    ),
  );

/** Every fact by itself, as `sources` names them. */
const facts = (of: object): [string, unknown][] =>
  Object.entries(of).flatMap(([field, value]): [string, unknown][] =>
    ["can", "limits", "image"].includes(field)
      ? Object.entries(value as object).map(([fact, x]) => [`${field}.${fact}`, x])
      : [[field, value]],
  );

describe("merging what is said of a model", () => {
  it("a weaker layer never changes what a stronger one says", () => {
    fc.assert(
      fc.property(layers, layer, (strong, weak) => {
        const before = merge("m", strong);
        const after = merge("m", [...strong, { ...weak, from: "shipped" }]);
        const now = new Map(facts(after.info));
        for (const [fact, value] of facts(before.info)) {
          // Below the operator's word, "image" says more than "chat".
          if (fact === "kind" && before.sources["kind"]?.from !== "operator") continue;
          expect(now.get(fact)).toEqual(value);
        }
      }),
    );
  });

  it("every fact has a source, and its source said exactly that", () => {
    fc.assert(
      fc.property(layers, (all) => {
        const { info, sources } = merge("m", all);
        const stated = facts(info).filter(
          ([f]) => f !== "model" && f !== "pricedAs" && !(f === "kind" && !sources["kind"]),
        );
        const named = new Set(stated.map(([f]) => f));
        if (info.pricedAs !== undefined) named.add("price");
        expect(Object.keys(sources).sort()).toEqual([...named].sort());
        for (const [fact, value] of stated) {
          const source = sources[fact]!;
          const possible = all
            .filter((l) => l.from === source.from && l.at === source.at)
            .flatMap((l) => facts(l.said))
            .filter(([f]) => f === fact)
            .map(([, v]) => (v === "free" ? FREE : v));
          expect(possible).toContainEqual(value);
        }
      }),
    );
  });

  it("what nobody says stays absent", () => {
    expect(merge("m", [])).toEqual({ info: { model: "m", kind: "chat" }, sources: {} });
    expect(
      merge("m", [{ from: "live", said: { kind: "chat", name: undefined, can: {} } }]).info,
    ).toEqual({ model: "m", kind: "chat" });
  });

  it("a price is never made of two halves", () => {
    const { info, sources } = merge("m", [
      { from: "operator", at: "2026-11-01", said: { pricedAs: "other" } },
      { from: "shipped", at: "2026-10-01", said: { price: price("1") } },
    ]);
    expect(info).toMatchObject({ pricedAs: "other" });
    expect(info.price).toBeUndefined();
    expect(sources["price"]).toEqual({ from: "operator", at: "2026-11-01" });
  });

  it("free is a price of zero; zero said by a weaker layer is not heard", () => {
    expect(merge("m", [{ from: "operator", said: { price: "free" } }]).info.price).toBe(FREE);
    expect(
      merge("m", [
        { from: "operator", said: { price: price("3") } },
        { from: "live", said: { price: "free" } },
      ]).info.price,
    ).toEqual(price("3"));
  });

  it("a list that calls everything chat does not unmake an image model; the operator does", () => {
    const live: FactLayer = { from: "live", said: { kind: "chat" } };
    const shipped: FactLayer = { from: "shipped", said: { kind: "image" } };
    expect(merge("m", [live, shipped]).info.kind).toBe("image");
    expect(merge("m", [{ from: "operator", said: { kind: "chat" } }, shipped]).info.kind).toBe(
      "chat",
    );
  });
});
