import { BOUNDS } from "../../lib/bounds.ts";
import type { OperationSpec } from "./operation-spec.ts";

/** Vendors that bill sound by tokens make some twenty of a second, in which fifteen characters are spoken. */
const TOKENS_A_CHARACTER = 2;
const TOKENS_A_SECOND = 20;
/** A second of sound has at least so many tokens. */
const LEAST_TOKENS_A_SECOND = 10;
/** A text, and instructions beside it, may ask for any length of sound. */
const SOUND = {
  param: "input",
  advice:
    "This API has no field that bounds the sound. The operator can set limits: { output: … } for this model, or a price per character.",
} as const;
/** Of the body that a text stands in, as it is guessed from its bytes. */
const CHARACTERS_A_TOKEN = 3;

/** Texts that are spoken: what every protocol that speaks says as its `work`. */
export const speechOperation: OperationSpec<"speech"> = {
  name: "speech",
  noun: "a speech model",
  outputModality: "audio",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["characters"], ["input", "audio_out"], ["input", "output"]],
  // By the character, or by the tokens of text and sound, whichever the price lists.
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
      description: "1,000 tokens in, 10,000 of sound out",
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
 * Characters as people count them: what is written with two halves in memory is one. Some vendors count bytes, or two for some
 * characters, and may count the text of another field too: `beside` is all of those.
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
