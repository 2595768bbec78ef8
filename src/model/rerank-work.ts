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
  most: ({ input, counts, atMost, worst }) => [
    [{ units: ["searches"], count: (worst ? atMost.searches : undefined) ?? counts.searches ?? 1 }],
    [{ units: ["input"], count: worst ? Math.max(input, atMost.input ?? 0) : input }],
  ],
  guess: ({ usage, input }) => ({ ...usage, input: usage.input ?? input }),
  extent: ({ query, documents }) => rankedIn(query, documents),
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

/** What documents are billed as unless the vendor reports otherwise, and what they can be billed as at a byte per token. */
export function rankedIn(
  query: string,
  documents: readonly (string | JsonObject)[],
): { counts: { searches: number }; atMost: { searches: number; input: number } } {
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
    counts: { searches: searches(counted) },
    atMost: { searches: searches(most), input: read },
  };
}

const searches = (pieces: number): number => Math.max(1, Math.ceil(pieces / A_SEARCH));
