import { describe, expect, it } from "vitest";
import { builtin } from "../../plugins/index.ts";
import { withFacts } from "../../plugins/providers/facts.ts";
import { parseModelList } from "../../src/catalog/model-lists.ts";
import type { Facts, ModelInfo } from "../../src/model/facts.ts";
import { calculateCost } from "../../src/money/price.ts";

const facts = async (name: keyof typeof builtin.provider): Promise<Facts | undefined> =>
  ((await builtin.provider[name]()) as { default: { facts?: Facts } }).default.facts;
const model = (of: Facts | undefined, name: string): ModelInfo | undefined =>
  of?.models.find((info) => info.model === name);

describe("providers with model metadata", () => {
  it("a config with one key prices its responses without calling a provider", async () => {
    for (const [provider, name, nano] of [
      ["openai", "gpt-4o-mini", 150n + 600n],
      ["anthropic", "claude-haiku-4-5", 1_000n + 5_000n],
      ["mistral", "mistral-small-latest", null],
      ["groq", "llama-3.1-8b-instant", null],
    ] as const) {
      const { price } = model(await facts(provider), name) ?? {};
      expect(price, `${provider}/${name}`).toBeDefined();
      if (nano !== null) expect(calculateCost({ input: 1, output: 1 }, price!)).toBe(nano);
    }
  });

  it("all metadata is valid for the catalog", async () => {
    for (const name of Object.keys(builtin.provider)) {
      const found = await facts(name as keyof typeof builtin.provider);
      if (found) expect(parseModelList(found.models).length, name).toBe(found.models.length);
    }
  });

  it("the provider's own code has priority, field by field", async () => {
    const own: Facts = {
      asOf: "2026-11-20",
      models: [
        {
          model: "gpt-4o",
          operation: "chat",
          name: "Ours",
          can: { tools: false },
          limits: { output: 5 },
        },
        { model: "secret", operation: "chat" },
      ],
    };
    const { facts } = await withFacts("openai", { facts: own as Facts | undefined });
    const merged = model(facts, "gpt-4o")!;
    expect(merged.name).toBe("Ours");
    expect(merged.can).toMatchObject({ tools: false, vision: true });
    expect(merged.limits).toEqual({ context: 128_000, output: 5 });
    expect(merged.price).toBeDefined();
    expect(model(facts, "secret")).toBeDefined();
    expect(facts!.asOf).toBe("2026-08-21");
  });

  it("and a provider without metadata is unchanged", async () => {
    const definition: { facts?: Facts } = {};
    expect(await withFacts("nobody", definition)).toBe(definition);
  });
});
