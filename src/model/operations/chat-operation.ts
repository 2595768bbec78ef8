import type { Unit } from "../usage.ts";
import type { UsageEstimate, OperationSpec } from "./operation-spec.ts";

const INPUT_UNITS = [
  "input",
  "cache_write_5m",
  "cache_write_30m",
  "cache_write_1h",
  "cache_write_12h",
] as const satisfies readonly Unit[];
const OUTPUT_UNITS = ["output", "reasoning"] as const satisfies readonly Unit[];

/** Chat. Used as `operation` by every chat protocol. */
export const chatOperation: OperationSpec<"chat"> = {
  name: "chat",
  noun: "a chat model",
  outputModality: "text",
  requiresCatalogEntry: false,
  generatesTokens: true,
  completeUnitSets: [["input", "output"]],
  estimateUsage({ isWorstCase, input, output, n, toolRuns, hasMedia, tools }) {
    if (!isWorstCase)
      return [
        [
          { units: ["input"], count: input },
          { units: ["output"], count: output * n },
          ...tools.map((unit): UsageEstimate => ({ units: [unit], count: 1 })),
        ],
      ];
    return [
      [
        // With some backends, each response reads the input again. Each tool run also reads it
        // again.
        {
          units: hasMedia ? [...INPUT_UNITS, "audio_in", "image_in"] : INPUT_UNITS,
          count: input * (1 + toolRuns),
        },
        {
          units: hasMedia ? [...OUTPUT_UNITS, "audio_out", "image_out"] : OUTPUT_UNITS,
          count: output * n,
        },
        ...tools.map((unit): UsageEstimate => ({ units: [unit], count: toolRuns })),
      ],
    ];
  },
  estimateMissingUsage: ({ usage, inputTokens, outputTokens }) => ({
    ...usage,
    input: usage.input ?? inputTokens,
    output: Math.max(usage.output ?? 0, outputTokens),
  }),
  analyzeCost: ({ output, sampling }) => ({ maxOutput: output.maxTokens, n: sampling.n }),
  withOutputCap: (request, tokens) => ({
    ...request,
    output: { ...request.output, maxTokens: tokens },
  }),
  singleWhenTranslated: true,
  pricingHint: ['{ input: "…", output: "…" }', "dollars per million tokens"],
  priceExamples: [
    { description: "10,000 tokens in, 1,000 out", usage: { input: 10_000, output: 1_000 } },
  ],
  sampleRequest: (model) => ({
    operation: "chat",
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
