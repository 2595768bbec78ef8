import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeFacts, type FactLayer, type StatedFacts } from "../../../src/catalog/merge-facts.ts";
import { FREE } from "../../../src/money/price.ts";

const price = (usd: string) => ({
  lines: [{ unit: "input" as const, usd, per: 1_000_000 as const }],
});

const said: fc.Arbitrary<StatedFacts> = fc.record(
  {
    operation: fc.constantFrom("chat", "image"),
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
  from: fc.constantFrom("operator", "live", "feed", "shipped"),
  at: fc.constantFrom("2026-11-01", "2026-11-02"),
  facts: said,
});
/** Highest first, in the catalog's order. */
const layers = fc
  .array(layer, { maxLength: 5 })
  .map((all) =>
    all.toSorted(
      (a, b) =>
        ["operator", "live", "feed", "shipped"].indexOf(a.from) -
        ["operator", "live", "feed", "shipped"].indexOf(b.from),
    ),
  );

/** Every fact separately, by its name in `sources`. */
const facts = (of: object): [string, unknown][] =>
  Object.entries(of).flatMap(([field, value]): [string, unknown][] =>
    ["can", "limits", "image"].includes(field)
      ? Object.entries(value as object).map(([fact, x]) => [`${field}.${fact}`, x])
      : [[field, value]],
  );

describe("merging model facts", () => {
  it("a lower source never changes a fact of a higher one", () => {
    fc.assert(
      fc.property(layers, layer, (strong, weak) => {
        const before = mergeFacts("m", strong);
        const after = mergeFacts("m", [...strong, { ...weak, from: "shipped" }]);
        const now = new Map(facts(after.info));
        for (const [fact, value] of facts(before.info)) {
          // Below the operator, "image" takes precedence over "chat".
          if (fact === "operation" && before.sources["operation"]?.from !== "operator") continue;
          expect(now.get(fact)).toEqual(value);
        }
      }),
    );
  });

  it("every fact has a source that states exactly this", () => {
    fc.assert(
      fc.property(layers, (all) => {
        const { info, sources } = mergeFacts("m", all);
        const stated = facts(info).filter(
          ([f]) =>
            f !== "model" && f !== "pricedAs" && !(f === "operation" && !sources["operation"]),
        );
        const named = new Set(stated.map(([f]) => f));
        if (info.pricedAs !== undefined) named.add("price");
        expect(Object.keys(sources).sort()).toEqual([...named].sort());
        for (const [fact, value] of stated) {
          const source = sources[fact]!;
          const possible = all
            .filter((l) => l.from === source.from && l.at === source.at)
            .flatMap((l) => facts(l.facts))
            .filter(([f]) => f === fact)
            .map(([, v]) => (v === "free" ? FREE : v));
          expect(possible).toContainEqual(value);
        }
      }),
    );
  });

  it("a fact without a source is undefined", () => {
    expect(mergeFacts("m", [])).toEqual({ info: { model: "m", operation: "chat" }, sources: {} });
    expect(
      mergeFacts("m", [{ from: "live", facts: { operation: "chat", name: undefined, can: {} } }])
        .info,
    ).toEqual({ model: "m", operation: "chat" });
  });

  it("a price is never combined from two sources", () => {
    const { info, sources } = mergeFacts("m", [
      { from: "operator", at: "2026-11-01", facts: { pricedAs: "other" } },
      { from: "shipped", at: "2026-10-01", facts: { price: price("1") } },
    ]);
    expect(info).toMatchObject({ pricedAs: "other" });
    expect(info.price).toBeUndefined();
    expect(sources["price"]).toEqual({ from: "operator", at: "2026-11-01" });
  });

  it("free is a price of zero; a zero from a lower source is ignored", () => {
    expect(mergeFacts("m", [{ from: "operator", facts: { price: "free" } }]).info.price).toBe(FREE);
    expect(
      mergeFacts("m", [
        { from: "operator", facts: { price: price("3") } },
        { from: "live", facts: { price: "free" } },
      ]).info.price,
    ).toEqual(price("3"));
  });

  it("a list that declares everything as chat does not change an image model; the operator does", () => {
    const live: FactLayer = { from: "live", facts: { operation: "chat" } };
    const shipped: FactLayer = { from: "shipped", facts: { operation: "image" } };
    expect(mergeFacts("m", [live, shipped]).info.operation).toBe("image");
    expect(
      mergeFacts("m", [{ from: "operator", facts: { operation: "chat" } }, shipped]).info.operation,
    ).toBe("chat");
  });
});
