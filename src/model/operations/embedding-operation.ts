import type { OperationSpec } from "./operation-spec.ts";

/** Embeddings. Used as `operation` by every embedding protocol. */
export const embeddingOperation: OperationSpec<"embedding"> = {
  name: "embedding",
  noun: "an embedding model",
  outputModality: "embeddings",
  requiresCatalogEntry: true,
  generatesTokens: false,
  outputIsModelSpecific: true,
  completeUnitSets: [["input"]],
  // If a request contains only token IDs, their count is exact.
  estimateUsage: ({ input, exactUsage, maxUsage, isWorstCase, hasMedia }) => [
    [
      {
        units: ["input"],
        count:
          (hasMedia && isWorstCase ? undefined : exactUsage.input) ??
          (isWorstCase ? Math.max(input, maxUsage.input ?? 0) : input),
      },
    ],
  ],
  estimateMissingUsage: ({ usage, inputTokens }) => ({
    ...usage,
    input: usage.input ?? inputTokens,
  }),
  analyzeCost: ({ inputs }) => ({ exactUsage: countTokenIds(inputs) }),
  pricingHint: ['{ input: "…" }', "dollars per million tokens"],
  priceExamples: [{ description: "10,000 tokens in", usage: { input: 10_000 } }],
  sampleRequest: (model) => ({
    operation: "embedding",
    model,
    stream: false,
    inputs: ["Hello"],
    rest: {},
    ext: {},
  }),
};

/** Returns the number of tokens if every input is a list of token ids. */
export function countTokenIds(inputs: readonly unknown[]): { input: number } | undefined {
  let input = 0;
  for (const one of inputs) {
    if (!Array.isArray(one)) return undefined;
    input += one.length;
  }
  return inputs.length > 0 ? { input } : undefined;
}
