import type { OperationSpec } from "./operation-spec.ts";

/** Text completion. Used as `operation` by every completion protocol. */
export const completionOperation: OperationSpec<"completion"> = {
  name: "completion",
  noun: "a completion model",
  outputModality: "text",
  requiresCatalogEntry: true,
  generatesTokens: true,
  completeUnitSets: [["input", "output"]],
  estimateUsage: ({ input, output, n }) => [
    [
      { units: ["input"], count: input },
      { units: ["output"], count: output * n },
    ],
  ],
  estimateMissingUsage: ({ usage, inputTokens, outputTokens }) => ({
    ...usage,
    input: usage.input ?? inputTokens,
    output: Math.max(usage.output ?? 0, outputTokens),
  }),
  analyzeCost: ({ maxTokens, sampling }) => ({ maxOutput: maxTokens, n: sampling.n }),
  withOutputCap: (request, tokens) => ({ ...request, maxTokens: tokens }),
  singleWhenTranslated: true,
  pricingHint: ['{ input: "…", output: "…" }', "dollars per million tokens"],
  priceExamples: [
    { description: "10,000 tokens in, 1,000 out", usage: { input: 10_000, output: 1_000 } },
  ],
  sampleRequest: (model) => ({
    operation: "completion",
    model,
    stream: false,
    prompts: ["Once upon a"],
    maxTokens: 100,
    sampling: {},
    rest: {},
    ext: {},
  }),
};
