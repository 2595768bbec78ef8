import type { JsonObject } from "./values.ts";
import type { Work } from "./work.ts";

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
export const rerankWork: Work<"rerank"> = {
  kind: "rerank",
  noun: "a reranking model",
  modality: "rankings",
  listed: true,
  written: false,
  whole: [["searches"], ["input"]],
  // By the search or by the token, whichever the price lists.
  most: ({ input, counts }) => [
    [{ units: ["searches"], count: counts.searches ?? 1 }],
    [{ units: ["input"], count: input }],
  ],
  guess: ({ usage, input }) => ({ ...usage, input: usage.input ?? input }),
  extent: ({ query, documents }) => ({ counts: searchesIn(query, documents) }),
  pricing: ['{ searches: "…" }', "dollars each, or { input: … } in dollars per million tokens"],
  examples: [
    { about: "100 documents", usage: { searches: 1 } },
    { about: "10,000 tokens in", usage: { input: 10_000 } },
  ],
  sample: (model) => ({
    kind: "rerank",
    model,
    stream: false,
    query: "Which one says hello?",
    documents: ["Hello", "Goodbye"],
    rest: {},
    ext: {},
  }),
};

/** What documents are billed as, unless the vendor says otherwise. */
export function searchesIn(
  query: string,
  documents: readonly (string | JsonObject)[],
): { searches: number } {
  const asked = Buffer.byteLength(query);
  let counted = 0;
  for (const document of documents) {
    const text = typeof document === "string" ? document : JSON.stringify(document);
    const tokens = (asked + Buffer.byteLength(text)) / BYTES_A_TOKEN;
    counted += Math.max(1, Math.ceil(tokens / A_DOCUMENT));
  }
  return { searches: Math.max(1, Math.ceil(counted / A_SEARCH)) };
}
