import type { Work } from "./work.ts";

/** Text that goes on: what every protocol that completes says as its `work`. */
export const completionWork: Work<"completion"> = {
  kind: "completion",
  noun: "a completion model",
  modality: "text",
  listed: true,
  written: true,
  whole: [["input", "output"]],
  most: ({ input, output, n }) => [
    [
      { units: ["input"], count: input },
      { units: ["output"], count: output * n },
    ],
  ],
  guess: ({ usage, input, written }) => ({
    ...usage,
    input: usage.input ?? input,
    output: Math.max(usage.output ?? 0, written),
  }),
  extent: ({ maxTokens, sampling }) => ({ maxOutput: maxTokens, n: sampling.n }),
  capped: (request, tokens) => ({ ...request, maxTokens: tokens }),
  oneTranslated: true,
  pricing: ['{ input: "…", output: "…" }', "dollars per million tokens"],
  examples: [{ about: "10,000 tokens in, 1,000 out", usage: { input: 10_000, output: 1_000 } }],
  sample: (model) => ({
    kind: "completion",
    model,
    stream: false,
    prompts: ["Once upon a"],
    maxTokens: 100,
    sampling: {},
    rest: {},
    ext: {},
  }),
};
