import type { Work } from "./work.ts";

/** Vectors: what every protocol that embeds says as its `work`. */
export const embeddingWork: Work<"embedding"> = {
  kind: "embedding",
  noun: "an embedding model",
  modality: "embeddings",
  listed: true,
  written: false,
  same: true,
  whole: [["input"]],
  // A request of token ids is its own count, unless something else can be read with them.
  most: ({ input, counts, atMost, worst, media }) => [
    [
      {
        units: ["input"],
        count:
          (media && worst ? undefined : counts.input) ??
          (worst ? Math.max(input, atMost.input ?? 0) : input),
      },
    ],
  ],
  guess: ({ usage, input }) => ({ ...usage, input: usage.input ?? input }),
  extent: ({ inputs }) => ({ counts: idsIn(inputs) }),
  pricing: ['{ input: "…" }', "dollars per million tokens"],
  examples: [{ about: "10,000 tokens in", usage: { input: 10_000 } }],
  sample: (model) => ({
    kind: "embedding",
    model,
    stream: false,
    inputs: ["Hello"],
    rest: {},
    ext: {},
  }),
};

/** How many tokens, where every input is a list of their ids. */
export function idsIn(inputs: readonly unknown[]): { input: number } | undefined {
  let input = 0;
  for (const one of inputs) {
    if (!Array.isArray(one)) return undefined;
    input += one.length;
  }
  return inputs.length > 0 ? { input } : undefined;
}
