import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { assemble, flatten } from "../../../.build/prices/assemble.ts";
import { readLitellm, readOpenrouter, type Source } from "../../../.build/prices/sources.ts";
import { formatReport } from "../../../.build/prices.ts";
import { readDocument } from "../../../src/catalog/prices/price-document.ts";
import type { Facts, Price } from "../../../src/model/facts.ts";

const NOW = Date.parse("2026-11-29T12:00:00Z");
const figuresOf = (source: Source, plugin: string, model: string) =>
  Object.fromEntries(source.get(plugin)?.get(model)?.figures ?? []);

describe("LiteLLM's price list", () => {
  const list = readLitellm(
    JSON.stringify({
      sample_spec: { litellm_provider: "one of https://docs.litellm.ai", input_cost_per_token: 0 },
      "gpt-6": {
        litellm_provider: "openai",
        mode: "chat",
        max_input_tokens: 400_000,
        deprecation_date: "2027-05-01",
        input_cost_per_token: 6.25e-6,
        output_cost_per_token: 0.00003,
        input_cost_per_token_above_272k_tokens: 1e-5,
        input_cost_per_token_batches: 2.5e-6,
        input_cost_per_token_above_272k_tokens_priority: 2e-5,
        input_cost_per_token_above_one_token: 1e-5,
        cache_read_input_token_cost: 0,
      },
      "gemini/gemini-9": {
        litellm_provider: "gemini",
        mode: "chat",
        input_cost_per_token: 1.25e-7,
      },
      "1024-x-1024/dall-e-2": {
        litellm_provider: "openai",
        mode: "image_generation",
        input_cost_per_pixel: 1.9e-8,
      },
      other: { litellm_provider: "nobody", input_cost_per_token: 1 },
    }),
  );

  it("has exact rates, brackets, and tiers by plugin and model", () => {
    expect(figuresOf(list, "openai", "gpt-6")).toEqual({
      input: 6_250_000n,
      output: 30_000_000n,
      "over.272000.input": 10_000_000n,
      "tiers.batch.input": 2_500_000n,
      "over.272000.tiers.priority.input": 20_000_000n,
    });
    expect(list.get("openai")!.get("gpt-6")).toMatchObject({
      operation: "chat",
      context: 400_000,
      retires: "2027-05-01",
      skipped: ["input_cost_per_token_above_one_token"],
    });
    expect(figuresOf(list, "google", "gemini-9")).toEqual({ input: 125_000n });
    expect([...list.keys()].sort()).toEqual(["google", "openai"]);
    expect([...list.get("openai")!.keys()]).toEqual(["gpt-6"]);
  });
});

describe("OpenRouter's models", () => {
  const list = readOpenrouter(
    JSON.stringify({
      data: [
        {
          id: "anthropic/claude-9.5",
          context_length: 1_000_000,
          pricing: {
            prompt: "0.000005",
            completion: "0.000025",
            input_cache_write: "0.00000625",
            input_cache_write_1h: "0.00001",
            web_search: "0.01",
            overrides: [
              { min_prompt_tokens: 200_000, prompt: "0.00001000000000000000005" },
              { utc_start: "1630", utc_end: "00:30", prompt: "0.000001" },
              { utc_start: "1630", utc_end: "0030", min_prompt_tokens: 1, prompt: "0.000001" },
            ],
          },
        },
        { id: "qwen/q:free", context_length: 1, pricing: { prompt: "0", completion: "0" } },
        { id: "openrouter/auto", context_length: 1, pricing: { prompt: "-1", completion: "-1" } },
      ],
    }),
  );

  it("has rates for OpenRouter and for the vendor, without the noise of floats", () => {
    const figures = {
      input: 5_000_000n,
      output: 25_000_000n,
      cache_write_5m: 6_250_000n,
      cache_write_1h: 10_000_000n,
      searches: 10_000_000_000n,
      "over.200000.input": 10_000_000n,
    };
    expect(figuresOf(list, "openrouter", "anthropic/claude-9.5")).toEqual(figures);
    expect(figuresOf(list, "anthropic", "claude-9.5")).toEqual(figures);
    expect(list.get("openrouter")!.get("anthropic/claude-9.5")!.skipped).toEqual([
      "overrides by time",
    ]);
    expect(list.get("openrouter")!.get("anthropic/claude-9.5")!.windows).toEqual([
      { from: "16:30", to: "00:30", figures: new Map([["input", 1_000_000n]]) },
    ]);
  });

  it("has a price of zero only for models that are named free", () => {
    expect(figuresOf(list, "openrouter", "qwen/q:free")).toEqual({ input: 0n, output: 0n });
    expect(list.get("alibaba")).toBeUndefined();
    expect(figuresOf(list, "openrouter", "openrouter/auto")).toEqual({});
  });
});

describe("a price document that is assembled from sources", () => {
  const price = (input: string, output: string): Price => ({
    lines: [
      { unit: "input", usd: input, per: 1_000_000 },
      { unit: "output", usd: output, per: 1_000_000 },
    ],
  });
  const own = (models: Facts["models"]): ReadonlyMap<string, Facts> =>
    new Map([["openai", { asOf: "2026-11-01", models }]]);
  const stated = (figures: Record<string, bigint>): Source =>
    new Map([
      [
        "openai",
        new Map([
          ["gpt-6", { figures: new Map(Object.entries(figures)), skipped: [], operation: "chat" }],
        ]),
      ],
    ]);
  const build = (models: Facts["models"], ...lists: readonly Source[]) =>
    buildAt("2026-11-28", models, lists);
  const buildAt = (retrieved: string, models: Facts["models"], lists: readonly Source[]) => {
    const made = assemble({
      version: 1,
      issued: "2026-11-29T06:00:00Z",
      own: own(models),
      sources: new Map(
        lists.map((list, i) => [`list${i}`, { list, url: "https://list.example", retrieved }]),
      ),
    });
    const document = readDocument(
      made.text,
      createHash("sha256").update(made.text).digest("hex"),
      NOW,
    );
    return { ...made, document, model: document.providers.get("openai")?.get("gpt-6") };
  };
  const gpt = (input: string): Facts["models"][number] => ({
    model: "gpt-6",
    operation: "chat",
    price: price(input, "8"),
  });

  it("names the sources that agree on each figure", () => {
    const { model, report } = build([gpt("2")], stated({ input: 2_000_000n, output: 9_000_000n }));
    expect(model!.prices[0]!.price).toEqual(price("2", "8"));
    expect(model!.figures).toEqual({ input: ["tollgate", "list0"], output: ["tollgate"] });
    expect(report).toMatchObject({ models: 1, priced: 1, agreed: 0, figures: 2, agreedFigures: 1 });
    expect(report.disagreements).toEqual([
      {
        model: "openai/gpt-6",
        figure: "output",
        usd: { tollgate: "0.000008", list0: "0.000009" },
        used: "tollgate",
      },
    ]);
    expect(formatReport(report)).toContain(
      "openai/gpt-6 output: tollgate 0.000008, list0 0.000009 (used: tollgate)",
    );
  });

  it("lets two agreeing sources outvote a third, and adds figures that only two of them have", () => {
    const list = stated({
      input: 1_000_000n,
      output: 8_000_000n,
      cache_read: 100_000n,
      "tiers.batch.input": 500_000n,
    });
    const { model } = build([gpt("2")], list, list);
    const { price: made } = model!.prices[0]!;
    expect(Object.fromEntries(flatten(made))).toEqual({
      input: 1_000_000n,
      output: 8_000_000n,
      cache_read: 100_000n,
      "tiers.batch.input": 500_000n,
    });
    expect(build([gpt("2")], list).model!.prices[0]!.price).toEqual(price("2", "8"));
  });

  it("lets no older list outvote a figure of ours", () => {
    const list = stated({ input: 1_000_000n, output: 8_000_000n });
    const older = buildAt("2026-10-31", [gpt("2")], [list, list]);
    expect(older.model!.prices[0]!.price).toEqual(price("2", "8"));
    expect(older.report.disagreements).toHaveLength(1);
  });

  it("has brackets of tiers, and rates by hour", () => {
    const figures = {
      input: 2_000_000n,
      "over.272000.input": 4_000_000n,
      "tiers.priority.input": 4_000_000n,
      "over.272000.tiers.priority.input": 9_000_000n,
    };
    const line = (usd: string) => [{ unit: "input", usd, per: 1_000_000 }];
    const base = {
      lines: line("2"),
      over: [{ input: 272_000, lines: line("4"), tiers: { priority: line("9") } }],
      tiers: { priority: line("4") },
    };
    expect(build([], stated(figures)).model!.prices[0]!.price).toEqual(base);
    const windows = [
      { from: "16:30", to: "00:30", figures: new Map([["input", 1_000_000n]]) },
    ] as const;
    const timed: Source = new Map([
      [
        "openai",
        new Map([["gpt-6", { ...stated(figures).get("openai")!.get("gpt-6")!, windows }]]),
      ],
    ]);
    expect(build([], timed).model!.prices[0]!.price).toEqual({
      ...base,
      lines: line("1"),
      hours: { from: "16:30", to: "00:30" },
      otherwise: base,
    });
    // Our own price is not changed by one source.
    const kept = build([gpt("2")], timed);
    expect(kept.model!.prices[0]!.price).toEqual(price("2", "8"));
    expect(kept.report.skipped).toEqual(["openai/gpt-6: overrides by time"]);
  });

  it("states the price of a model that has the price of another one", () => {
    const { document } = build([
      gpt("2"),
      { model: "gpt-6-2026-05-01", operation: "chat", pricedAs: "gpt-6" },
    ]);
    const dated = document.providers.get("openai")!.get("gpt-6-2026-05-01")!;
    expect(dated.prices).toEqual([{ price: price("2", "8") }]);
  });

  it("lists the models of a cloud under the names of all its plugins", () => {
    const models = new Map(
      ["azure", "bedrock"].map((name) => [name, { asOf: "2026-11-01", models: [gpt("2")] }]),
    );
    const { text, report } = assemble({
      version: 1,
      issued: "2026-11-29T06:00:00Z",
      own: models,
      sources: new Map(),
    });
    const read = readDocument(text, "digest", NOW);
    expect([...read.providers.keys()].sort()).toEqual(["aws", "azure", "azure-foundry", "bedrock"]);
    expect(read.providers.get("aws")).toEqual(read.providers.get("bedrock"));
    expect(report).toMatchObject({ models: 2, priced: 2 });
  });

  it("adds a model that only a further source has", () => {
    const { model, report } = build([], stated({ input: 2_000_000n }));
    expect(model!.prices[0]!.price.lines).toEqual([{ unit: "input", usd: "2", per: 1_000_000 }]);
    expect(report).toMatchObject({ models: 1, priced: 1, agreed: 0 });
  });
});
