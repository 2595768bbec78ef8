import type { Unit } from "./usage.ts";
import type { Portion, Work } from "./work.ts";

const READ = [
  "input",
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
] as const satisfies readonly Unit[];
const WRITTEN = ["output", "reasoning"] as const satisfies readonly Unit[];

/** Conversations: what every protocol that chats says as its `work`. */
export const chatWork: Work<"chat"> = {
  kind: "chat",
  noun: "a chat model",
  modality: "text",
  listed: false,
  written: true,
  whole: [["input", "output"]],
  most({ worst, input, output, n, runs, media, tools }) {
    if (!worst)
      return [
        [
          { units: ["input"], count: input },
          { units: ["output"], count: output * n },
          ...tools.map((unit): Portion => ({ units: [unit], count: 1 })),
        ],
      ];
    return [
      [
        // Each answer is made from the input anew with some backends, and after each run of a tool it is read again.
        { units: media ? [...READ, "audio_in", "image_in"] : READ, count: input * (1 + runs) },
        { units: media ? [...WRITTEN, "audio_out", "image_out"] : WRITTEN, count: output * n },
        ...tools.map((unit): Portion => ({ units: [unit], count: runs })),
      ],
    ];
  },
  guess: ({ usage, input, written }) => ({
    ...usage,
    input: usage.input ?? input,
    output: Math.max(usage.output ?? 0, written),
  }),
  extent: ({ output, sampling }) => ({ maxOutput: output.maxTokens, n: sampling.n }),
  capped: (request, tokens) => ({
    ...request,
    output: { ...request.output, maxTokens: tokens },
  }),
  oneTranslated: true,
  pricing: ['{ input: "…", output: "…" }', "dollars per million tokens"],
  examples: [{ about: "10,000 tokens in, 1,000 out", usage: { input: 10_000, output: 1_000 } }],
  sample: (model) => ({
    kind: "chat",
    model,
    stream: false,
    instructions: [],
    turns: [{ role: "user", blocks: [{ type: "text", text: "Hello" }] }],
    tools: [],
    output: { maxTokens: 100 },
    sampling: {},
    reasoning: { mode: "auto" },
    state: {},
    rest: {},
    ext: {},
  }),
};
