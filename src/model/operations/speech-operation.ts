import { BOUNDS } from "../../lib/bounds.ts";
import type { OperationSpec } from "./operation-spec.ts";

/**
 * Tokens per character and per second of audio. Providers that bill audio in tokens count about 20
 * per second, in which about 15 characters are spoken.
 */
const TOKENS_A_CHARACTER = 2;
const TOKENS_A_SECOND = 20;
/** Minimum number of tokens per second of audio. */
const LEAST_TOKENS_A_SECOND = 10;
/** A text, together with instructions, may request audio of any length. */
const SOUND = {
  param: "input",
  advice:
    "This API has no field that limits the audio. The operator can set limits: { " +
    "output: … } for this model, or a price per character.",
} as const;
/** Characters per token of the body, for an estimate from its bytes. */
const CHARACTERS_A_TOKEN = 3;

/** Speech synthesis. Used as `operation` by every speech protocol. */
export const speechOperation: OperationSpec<"speech"> = {
  name: "speech",
  noun: "a speech model",
  outputModality: "audio",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["characters"], ["input", "audio_out"], ["input", "output"]],
  // Measured in characters or in tokens of text and audio, depending on the price.
  estimateUsage({ input, exactUsage, maxUsage, isWorstCase, modelMaxOutput }) {
    const characters = exactUsage.characters ?? input * CHARACTERS_A_TOKEN;
    const sound =
      isWorstCase && modelMaxOutput !== undefined
        ? modelMaxOutput
        : characters * TOKENS_A_CHARACTER;
    const unbounded = isWorstCase && modelMaxOutput === undefined && { unbounded: SOUND };
    const read = { units: ["input"], count: input } as const;
    return [
      [
        {
          units: ["characters"],
          count: isWorstCase ? (maxUsage.characters ?? characters) : characters,
        },
      ],
      [read, { units: ["audio_out"], count: sound, ...unbounded }],
      [read, { units: ["output"], count: sound, ...unbounded }],
      [
        {
          units: ["seconds_out"],
          count: Math.ceil(sound / (isWorstCase ? LEAST_TOKENS_A_SECOND : TOKENS_A_SECOND)),
          ...unbounded,
        },
      ],
    ];
  },
  estimateMissingUsage: ({ usage, inputTokens }) => ({
    ...usage,
    input: usage.input ?? inputTokens,
    audio_out: usage.audio_out ?? inputTokens * CHARACTERS_A_TOKEN * TOKENS_A_CHARACTER,
  }),
  analyzeCost: ({ input, instructions = "" }) => estimateSpeechUsage(input, instructions),
  maxResponseBytes: BOUNDS.imageResponse.max,
  pricingHint: [
    '{ characters: "…" }',
    "dollars each, or { input: …, audio_out: … } per million tokens",
  ],
  priceExamples: [
    { description: "1,000 characters", usage: { characters: 1_000 } },
    {
      description: "1,000 tokens in, 10,000 audio tokens out",
      usage: { input: 1_000, audio_out: 10_000 },
    },
  ],
  sampleRequest: (model) => ({
    operation: "speech",
    model,
    stream: true,
    input: "Hello",
    voice: "alloy",
    format: "wav",
    rest: {},
    ext: {},
  }),
};

/**
 * Counts characters in the same way as people: a surrogate pair is one character. Some providers
 * count bytes, count some characters twice, or also count the text of other fields. `beside` is the
 * text of those fields.
 */
export function estimateSpeechUsage(
  text: string,
  beside: string,
): { exactUsage: { characters: number }; maxUsage: { characters: number } } {
  let characters = 0;
  for (const _ of text) characters++;
  return {
    exactUsage: { characters },
    maxUsage: { characters: Buffer.byteLength(text) + Buffer.byteLength(beside) },
  };
}
