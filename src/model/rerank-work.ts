import type { Work } from "./work.ts";

/** Documents that vendors bill as one search. */
const A_SEARCH = 100;

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
  extent: ({ documents }) => ({ counts: searchesIn(documents.length) }),
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

/** What so many documents are billed as, unless the vendor says more: long ones may count as several. */
export const searchesIn = (documents: number): { searches: number } => ({
  searches: Math.max(1, Math.ceil(documents / A_SEARCH)),
});
