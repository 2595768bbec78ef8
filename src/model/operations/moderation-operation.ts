import type { OperationSpec } from "./operation-spec.ts";

/** Moderation of texts and images. Used as `operation` by every moderation protocol. */
export const moderationOperation: OperationSpec<"moderation"> = {
  name: "moderation",
  noun: "a moderation model",
  outputModality: "verdicts",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["requests"], ["input"]],
  // Some providers bill the input. The others report no usage, and most of these providers are
  // free.
  estimateUsage: ({ input }) => [
    [
      { units: ["input"], count: input },
      { units: ["requests"], count: 1 },
    ],
    [{ units: ["requests"], count: 1 }],
  ],
  estimateMissingUsage: ({ usage, inputTokens }) => ({
    ...usage,
    input: usage.input ?? inputTokens,
  }),
  analyzeCost: () => ({ exactUsage: { requests: 1 } }),
  pricingHint: ['{ requests: "…" }', "dollars each, or price: free"],
  priceExamples: [
    { description: "one request", usage: { requests: 1 } },
    { description: "10,000 tokens in", usage: { input: 10_000 } },
  ],
  sampleRequest: (model) => ({
    operation: "moderation",
    model,
    stream: false,
    input: "Hello",
    rest: {},
    ext: {},
  }),
};
