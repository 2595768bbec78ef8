import type { JsonObject } from "../values.ts";
import type { OperationSpec } from "./operation-spec.ts";

/**
 * Documents that vendors bill as one search, each with its query of so many tokens at most: a longer one counts as several. So
 * Microsoft's page on the models that it sells for Cohere has it for rerank-v3.5 (read in November 2026 at
 * learn.microsoft.com/azure/ai-foundry, "Pricing for Cohere rerank models"); for those before it, 4,096 tokens. Cohere's own report of
 * search units wins.
 */
const A_SEARCH = 100;
const A_DOCUMENT = 500;
/** Ordinary text has more, so that the count is not too low. */
const BYTES_A_TOKEN = 3;

/** Orders of documents: what every protocol that ranks says as its `work`. */
export const rerankOperation: OperationSpec<"rerank"> = {
  name: "rerank",
  noun: "a reranking model",
  outputModality: "rankings",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["searches"], ["input"]],
  // By the search or by the token, whichever the price lists.
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

/** What documents are billed as unless the vendor reports otherwise, and what they can be billed as at a byte per token. */
export function estimateRerankUsage(
  query: string,
  documents: readonly (string | JsonObject)[],
): { exactUsage: { searches: number }; maxUsage: { searches: number; input: number } } {
  const asked = Buffer.byteLength(query);
  // Every piece of a document may be read with the query again, which takes half of a piece at most.
  const room = A_DOCUMENT - Math.min(asked, A_DOCUMENT / 2);
  let [counted, most, read] = [0, 0, 0];
  for (const document of documents) {
    const text = typeof document === "string" ? document : JSON.stringify(document);
    const bytes = Buffer.byteLength(text);
    counted += Math.max(1, Math.ceil((asked + bytes) / BYTES_A_TOKEN / A_DOCUMENT));
    const pieces = Math.max(1, Math.ceil(bytes / room));
    most += pieces;
    read += pieces * asked + bytes;
  }
  return {
    exactUsage: { searches: searches(counted) },
    maxUsage: { searches: searches(most), input: read },
  };
}

const searches = (pieces: number): number => Math.max(1, Math.ceil(pieces / A_SEARCH));
