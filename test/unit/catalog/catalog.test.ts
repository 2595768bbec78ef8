import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createCatalog,
  type CatalogSources,
  type ProviderFacts,
} from "../../../src/catalog/catalog.ts";
import { createInMemoryModelLists } from "../../../src/catalog/model-lists.ts";
import type { ModelInfo } from "../../../src/model/facts.ts";

const chat = (model: string, more: Partial<ModelInfo> = {}): ModelInfo => ({
  model,
  operation: "chat",
  ...more,
});
const image = (model: string, more: Partial<ModelInfo> = {}): ModelInfo => ({
  model,
  operation: "image",
  ...more,
});
const price = (usd: string) => ({
  lines: [{ unit: "input" as const, usd, per: 1_000_000 as const }],
});
const shipped = (...models: ModelInfo[]): ProviderFacts => ({
  hasLiveList: true,
  shipped: { asOf: "2026-11-01", models },
});
const stock = (providers: Record<string, ProviderFacts>, parts: CatalogSources = {}) => {
  const lists = createInMemoryModelLists();
  return {
    lists,
    catalog: createCatalog({ ...parts, lists, providers: new Map(Object.entries(providers)) }),
  };
};
const AT = Date.parse("2026-11-20T10:00:00Z");

describe("the facts of a model", () => {
  it("come per field from the operator, the live list, and built-in metadata, each with its date", () => {
    const { lists, catalog } = stock({
      openai: {
        ...shipped(
          chat("gpt-6", {
            name: "GPT-6",
            price: price("2"),
            limits: { context: 1, output: 2 },
            can: { tools: true, vision: true },
          }),
        ),
        operator: new Map([["gpt-6", { price: price("9"), can: { vision: false } }]]),
      },
    });
    lists.update("openai", "main", [chat("gpt-6", { limits: { context: 400_000 } })], AT);
    const { info, sources, listed } = catalog.find("openai", "gpt-6");
    expect(listed).toBe(true);
    expect(info).toEqual({
      model: "gpt-6",
      operation: "chat",
      name: "GPT-6",
      price: price("9"),
      limits: { context: 400_000, output: 2 },
      can: { tools: true, vision: false },
    });
    const live = { from: "live", at: "2026-11-20T10:00:00.000Z", credential: "main" };
    const ours = { from: "shipped", at: "2026-11-01" };
    expect(sources).toEqual({
      operation: live,
      name: ours,
      price: { from: "operator", at: undefined },
      "limits.context": live,
      "limits.output": ours,
      "can.tools": ours,
      "can.vision": { from: "operator", at: undefined },
    });
  });

  it("an unknown model is a chat model without facts, and a lookup creates none", () => {
    const { catalog } = stock({ openai: shipped() });
    expect(catalog.find("openai", "x/y:z[1m]")).toEqual({
      info: { model: "x/y:z[1m]", operation: "chat" },
      listed: false,
      sources: {},
    });
    expect(catalog.find("nobody", "x").listed).toBe(false);
    expect(catalog.list()).toEqual([]);
    expect(catalog.version).toBe(1);
  });

  it("prices may be those of another model, of the same or another provider, and state the source", () => {
    const { lists, catalog } = stock({
      azure: {
        operator: new Map([
          ["mine", { operation: "chat", pricedAs: "openai/gpt-6" }],
          ["twice", { operation: "chat", pricedAs: "mine" }],
          ["round", { operation: "chat", pricedAs: "round" }],
          ["lost", { operation: "chat", pricedAs: "nobody/none" }],
        ]),
      },
      openai: shipped(),
    });
    expect(catalog.find("azure", "mine").info.price).toBeUndefined();
    lists.update("openai", "main", [chat("gpt-6", { price: price("4") })], AT);
    for (const model of ["mine", "twice"]) {
      expect(catalog.find("azure", model).info.price).toEqual(price("4"));
      expect(catalog.find("azure", model).sources["price"]).toMatchObject({
        from: "live",
        pricedAs: "openai/gpt-6",
      });
    }
    for (const model of ["round", "lost"])
      expect(catalog.find("azure", model).info.price).toBeUndefined();
  });
});

describe("existing models", () => {
  it("an image model exists while the live list names it", () => {
    const { lists, catalog } = stock({ openai: shipped(image("gpt-image-2"), chat("gpt-6")) });
    expect(catalog.find("openai", "gpt-image-2")).toMatchObject({
      listed: false,
      info: { operation: "image" },
    });
    lists.update("openai", "main", [chat("gpt-image-2"), chat("gpt-6")], AT);
    expect(catalog.find("openai", "gpt-image-2")).toMatchObject({
      listed: true,
      info: { operation: "image" },
    });
    expect(catalog.list({ operation: "image" }).map((l) => l.id)).toEqual(["openai/gpt-image-2"]);
    lists.update("openai", "main", [chat("gpt-6")], AT);
    expect(catalog.find("openai", "gpt-image-2").listed).toBe(false);
    expect(catalog.list({ operation: "image" })).toEqual([]);
  });

  it("built-in chat models are used until a list arrives", () => {
    const { lists, catalog } = stock({ openai: shipped(chat("gpt-6", { price: price("2") })) });
    expect(catalog.list().map((l) => l.id)).toEqual(["openai/gpt-6"]);
    lists.update("openai", "main", [chat("gpt-7")], AT);
    expect(catalog.list().map((l) => l.id)).toEqual(["openai/gpt-7"]);
    // Forwarded, with the known metadata.
    expect(catalog.find("openai", "gpt-6")).toMatchObject({
      listed: false,
      info: { price: price("2") },
    });
  });

  it("a provider without a list has the models of its metadata", () => {
    const { catalog } = stock({
      bfl: { shipped: { asOf: "2026-11-01", models: [image("flux")] } },
    });
    expect(catalog.find("bfl", "flux").listed).toBe(true);
  });

  it("the operator creates a model by its type, not by its price", () => {
    const { catalog } = stock({
      local: {
        hasLiveList: true,
        operator: new Map([
          ["sdxl", { operation: "image" as const }],
          ["other", { price: "free" as const }],
        ]),
      },
    });
    expect(catalog.find("local", "sdxl").listed).toBe(true);
    expect(catalog.find("local", "other").listed).toBe(false);
  });

  it("a model exists if any credential may call it", () => {
    const { lists, catalog } = stock({ xai: { hasLiveList: true } });
    lists.update("xai", "a", [chat("one"), chat("both", { name: "A's" })], AT);
    lists.update("xai", "b", [chat("both", { name: "B's" }), image("two")], AT);
    expect(catalog.list().map((l) => l.id)).toEqual(["xai/both", "xai/one", "xai/two"]);
    expect(catalog.find("xai", "both").info.name).toBe("A's");
    lists.retainCredentials("xai", ["b"]);
    expect(catalog.list().map((l) => l.id)).toEqual(["xai/both", "xai/two"]);
    expect(catalog.find("xai", "both").info.name).toBe("B's");
  });

  it("a disposed catalog receives no updates", () => {
    const { lists, catalog } = stock({ xai: { hasLiveList: true } });
    catalog[Symbol.dispose]();
    lists.update("xai", "a", [chat("one")], AT);
    expect(catalog.list()).toEqual([]);
  });
});

describe("listings", () => {
  const providers = {
    a: {
      shipped: { asOf: "2026-11-01", models: [chat("x", { can: { tools: true } }), image("p")] },
    },
    b: {
      shipped: {
        asOf: "2026-11-01",
        models: [chat("x", { can: { tools: true }, limits: { context: 5 } })],
      },
    },
  };

  it("are filtered by type, provider, permission, and privacy", () => {
    const { catalog } = stock(providers, {
      policyOf: (provider) => ({
        retention: { kind: provider === "a" ? "zero" : "memory" },
        trains: "no",
        basis: "test",
        reasons: [],
      }),
    });
    const ids = (of: Parameters<typeof catalog.list>[0]) => catalog.list(of).map((l) => l.id);
    expect(ids({})).toEqual(["a/p", "a/x", "b/x"]);
    expect(ids({ operation: "chat" })).toEqual(["a/x", "b/x"]);
    expect(ids({ provider: "a" })).toEqual(["a/p", "a/x"]);
    expect(ids({ isAllowed: (id) => id.endsWith("x") })).toEqual(["a/x", "b/x"]);
    expect(ids({ privacy: "strict" })).toEqual(["a/p", "a/x"]);
    expect(ids({ privacy: "required" })).toEqual(["a/p", "a/x", "b/x"]);
  });

  it("exclude unknown data policies under privacy", () => {
    const { catalog } = stock(providers);
    expect(catalog.list({ privacy: "required" })).toEqual([]);
  });

  it("show an alias with the facts that all its models share", () => {
    const { catalog } = stock(providers, {
      aliases: new Map([
        ["fast", ["a/x", "b/x"]],
        ["faster", ["fast"]],
        ["gone", ["c/x"]],
        ["gpt-*", ["a/*"]],
        ["a/x", ["b/x"]],
      ]),
    });
    expect(catalog.list().map((l) => l.id)).toEqual(["fast", "faster", "a/x", "a/p", "b/x"]);
    expect(catalog.listing("fast")).toMatchObject({
      id: "fast",
      provider: "a",
      operation: "chat",
      can: { tools: true },
    });
    expect(catalog.listing("fast")!.limits).toBeUndefined();
    expect(catalog.listing("a/x")!.limits).toEqual({ context: 5 });
    expect(catalog.listing("nothing")).toBeUndefined();
  });

  it("circular aliases end", () => {
    const { catalog } = stock(providers, {
      aliases: new Map([
        ["one", ["two"]],
        ["two", ["one", "a/x"]],
      ]),
    });
    expect(catalog.listing("one")).toMatchObject({ provider: "a" });
  });

  it("policies are evaluated again within a minute", () => {
    let now = AT;
    const { catalog } = stock(providers, {
      now: () => now,
      policyOf: () => ({
        retention: { kind: now > AT + 30_000 ? "unknown" : "zero" },
        trains: "no",
        basis: "test",
        reasons: [],
      }),
    });
    expect(catalog.list({ privacy: "strict" })).toHaveLength(3);
    now = AT + 61_000;
    expect(catalog.list({ privacy: "strict" })).toHaveLength(0);
  });
});

describe("suggested names", () => {
  const { catalog } = stock({
    anthropic: shipped(chat("claude-sonnet-5"), chat("claude-opus-5"), chat("claude-haiku-4-5")),
    openai: shipped(chat("gpt-6-luna"), chat("gpt-6-sol")),
    images: { shipped: { asOf: "2026-11-01", models: [image("gpt-6-picture")] } },
  });

  it("are the nearest first, at most three, of the requested type and permission", () => {
    expect(catalog.suggest("openai/claude-opus-5")[0]).toBe("anthropic/claude-opus-5");
    expect(catalog.suggest("claude-opus-5")[0]).toBe("anthropic/claude-opus-5");
    expect(catalog.suggest("anthropic/claude-sonet-5")[0]).toBe("anthropic/claude-sonnet-5");
    expect(catalog.suggest("openai/gpt-6")).toEqual([
      "openai/gpt-6-sol",
      "openai/gpt-6-luna",
      "images/gpt-6-picture",
    ]);
    expect(catalog.suggest("openai/gpt-6", "image")).toEqual(["images/gpt-6-picture"]);
    expect(catalog.suggest("images/gpt-7-picture", "image")[0]).toBe("images/gpt-6-picture");
    expect(catalog.suggest("openai/gpt-6-sal")).toEqual(["openai/gpt-6-sol", "openai/gpt-6-luna"]);
    expect(catalog.suggest("openai/gpt-6", "chat", (id) => id.endsWith("luna"))).toEqual([
      "openai/gpt-6-luna",
    ]);
    expect(catalog.suggest("")).toEqual([]);
    expect(catalog.suggest("z".repeat(300))).toEqual([]);
  });

  it("one wrong letter is always found", () => {
    const ids = catalog.list().map((l) => l.id);
    fc.assert(
      fc.property(fc.constantFrom(...ids), fc.nat(), fc.constantFrom("q", "0", "-"), (id, n, c) => {
        const at = n % id.length;
        expect(catalog.suggest(id.slice(0, at) + c + id.slice(at + 1))).toContain(id);
      }),
    );
  });
});
