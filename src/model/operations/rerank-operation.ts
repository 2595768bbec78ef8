import type { JsonObject } from "../values.ts";
import type { OperationSpec } from "./operation-spec.ts";

/**
 * Number of documents that providers bill as one search, and number of tokens per document,
 * including the query. A longer document counts as several documents. Source: Microsoft's page on
 * Cohere's models, for rerank-v3.5 (read in November 2026 at learn.microsoft.com/azure/ai-foundry,
 * "Pricing for Cohere rerank models"). Earlier models have 4,096 tokens. Search units that Cohere
 * reports take precedence.
 */
const A_SEARCH = 100;
const A_DOCUMENT = 500;
/** Ordinary text has more bytes per token, so the count is not too low. */
const BYTES_A_TOKEN = 3;

/** Reranking. Used as `operation` by every rerank protocol. */
export const rerankOperation: OperationSpec<"rerank"> = {
  name: "rerank",
  noun: "a reranking model",
  outputModality: "rankings",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["searches"], ["input"]],
  // Measured in searches or tokens, depending on the price.
  estimateUsage: ({ input, exactUsage, maxUsage, isWorstCase }) => [
    [
      {
        units: ["searches"],
        count: (isWorstCase ? maxUsage.searches : undefined) ?? exactUsage.searches ?? 1,
      },
    ],
    [{ units: ["input"], count: isWorstCase ? Math.max(input, maxUsage.input ?? 0) : input }],
  ],
  estimateMissingUsage: ({ usage, inputTokens }) => ({
    ...usage,
    input: usage.input ?? inputTokens,
  }),
  analyzeCost: ({ query, documents }) => estimateRerankUsage(query, documents),
  pricingHint: ['{ searches: "…" }', "dollars each, or { input: … } in dollars per million tokens"],
  priceExamples: [
    { description: "100 documents", usage: { searches: 1 } },
    { description: "10,000 tokens in", usage: { input: 10_000 } },
  ],
  sampleRequest: (model) => ({
    operation: "rerank",
    model,
    stream: false,
    query: "Which one says hello?",
    documents: ["Hello", "Goodbye"],
    rest: {},
    ext: {},
  }),
};

/**
 * Returns the number of searches that are billed for documents unless the provider reports another
 * number, and the maximum usage at one byte per token.
 */
export function estimateRerankUsage(
  query: string,
  documents: readonly (string | JsonObject)[],
): { exactUsage: { searches: number }; maxUsage: { searches: number; input: number } } {
  const queryBytes = Buffer.byteLength(query);
  // The query may be read again with each piece of a document, and takes up to half of a piece.
  const room = A_DOCUMENT - Math.min(queryBytes, A_DOCUMENT / 2);
  let [counted, most, read] = [0, 0, 0];
  for (const document of documents) {
    const text = typeof document === "string" ? document : JSON.stringify(document);
    const bytes = Buffer.byteLength(text);
    counted += Math.max(1, Math.ceil((queryBytes + bytes) / BYTES_A_TOKEN / A_DOCUMENT));
    const pieces = Math.max(1, Math.ceil(bytes / room));
    most += pieces;
    read += pieces * queryBytes + bytes;
  }
  return {
    exactUsage: { searches: searches(counted) },
    maxUsage: { searches: searches(most), input: read },
  };
}

const searches = (pieces: number): number => Math.max(1, Math.ceil(pieces / A_SEARCH));
