import type { RealtimeRequest } from "../request.ts";
import type { OperationSpec, UsageEstimate } from "./operation-spec.ts";

/**
 * Input and output tokens per second of transcribed audio. Providers that bill in tokens count 10
 * to 17 per second of audio, and people speak fewer than 10 per second.
 */
const HEARD_A_SECOND = 20;
const WRITTEN_A_SECOND = 10;

/**
 * Spoken conversations over a socket. Used as `operation` by every protocol of such sockets. Each
 * response of the model is one call, which reads the whole conversation again.
 */
export const realtimeOperation: OperationSpec<"realtime"> = {
  name: "realtime",
  noun: "a realtime model",
  outputModality: "audio",
  requiresCatalogEntry: true,
  generatesTokens: true,
  completeUnitSets: [["input", "output"], ["seconds"]],
  // If a socket has a meter, it provides the amounts of text, audio, and images in the
  // conversation. If these are unknown, the most expensive type is assumed. Transcription is billed
  // in seconds or tokens.
  estimateUsage({ isWorstCase, input, output, n, expectedUsage, maxUsage }) {
    const known = isWorstCase ? maxUsage : expectedUsage;
    const spoken: UsageEstimate = { units: ["output", "audio_out"], count: output * n };
    if (known.seconds !== undefined)
      return [
        [{ units: ["seconds"], count: known.seconds }],
        [
          { units: ["audio_in", "input"], count: known.seconds * HEARD_A_SECOND },
          { units: ["output"], count: known.seconds * WRITTEN_A_SECOND },
        ],
      ];
    if (known.input === undefined)
      return [[{ units: ["input", "audio_in", "image_in"], count: input }, spoken]];
    return [
      [
        { units: ["input"], count: known.input },
        { units: ["audio_in"], count: known.audio_in ?? 0 },
        { units: ["image_in"], count: known.image_in ?? 0 },
        spoken,
      ],
    ];
  },
  estimateMissingUsage: ({ usage, inputTokens, outputTokens }) => ({
    ...usage,
    input: usage.input ?? inputTokens,
    output: Math.max(usage.output ?? 0, outputTokens),
  }),
  analyzeCost: ({ maxTokens }) => ({ maxOutput: maxTokens }),
  withOutputCap: (request, tokens) => ({ ...request, maxTokens: tokens }),
  pricingHint: [
    '{ input: "…", output: "…", audio_in: "…", audio_out: "…" }',
    "dollars per million tokens",
  ],
  priceExamples: [
    {
      description: "one minute of speech in, one minute out",
      usage: { input: 200, audio_in: 600, output: 300, audio_out: 1_200 },
    },
    { description: "10,000 tokens in, 1,000 out", usage: { input: 10_000, output: 1_000 } },
  ],
  sampleRequest: (model) => ({
    operation: "realtime",
    model,
    stream: true,
    instructions: [],
    turns: [{ role: "user", blocks: [{ type: "text", text: "Hello" }] }],
    rest: {},
    ext: {},
  }),
};

/** Returns the request of a connection on which no content was sent yet. */
export const emptyRealtimeRequest = (model: string): RealtimeRequest => ({
  operation: "realtime",
  model,
  stream: true,
  instructions: [],
  turns: [],
  rest: {},
  ext: {},
});
