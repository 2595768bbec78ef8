import type { Work } from "./work.ts";

/** Verdicts on texts and pictures: what every protocol that moderates says as its `work`. */
export const moderationWork: Work<"moderation"> = {
  kind: "moderation",
  noun: "a moderation model",
  modality: "verdicts",
  listed: true,
  written: false,
  whole: [["requests"], ["input"]],
  // Some vendors bill what they read; the others count nothing, and mostly charge nothing.
  most: ({ input }) => [
    [
      { units: ["input"], count: input },
      { units: ["requests"], count: 1 },
    ],
    [{ units: ["requests"], count: 1 }],
  ],
  guess: ({ usage, input }) => ({ ...usage, input: usage.input ?? input }),
  extent: () => ({ counts: { requests: 1 } }),
  pricing: ['{ requests: "…" }', "dollars each, or price: free"],
  examples: [
    { about: "one request", usage: { requests: 1 } },
    { about: "10,000 tokens in", usage: { input: 10_000 } },
  ],
  sample: (model) => ({
    kind: "moderation",
    model,
    stream: false,
    input: "Hello",
    rest: {},
    ext: {},
  }),
};
