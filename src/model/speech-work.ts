import { BOUNDS } from "../lib/bounds.ts";
import type { Work } from "./work.ts";

/** Vendors that bill sound by tokens make some twenty of a second, in which fifteen characters are spoken. */
const TOKENS_A_CHARACTER = 2;
/** A text may be spoken at a quarter of the speed, and by a slow voice. */
const MOST_TOKENS_A_CHARACTER = 16;
/** Of the body that a text stands in, as it is guessed from its bytes. */
const CHARACTERS_A_TOKEN = 3;

/** Texts that are spoken: what every protocol that speaks says as its `work`. */
export const speechWork: Work<"speech"> = {
  kind: "speech",
  noun: "a speech model",
  modality: "audio",
  listed: true,
  written: false,
  whole: [["characters"], ["input", "audio_out"], ["input", "output"]],
  // By the character, or by the tokens of text and sound, whichever the price lists.
  most({ input, counts: { characters = input * CHARACTERS_A_TOKEN }, worst }) {
    const sound = characters * (worst ? MOST_TOKENS_A_CHARACTER : TOKENS_A_CHARACTER);
    const read = { units: ["input"], count: input } as const;
    return [
      [{ units: ["characters"], count: characters }],
      [read, { units: ["audio_out"], count: sound }],
      [read, { units: ["output"], count: sound }],
      [{ units: ["seconds_out"], count: Math.ceil(sound / 20) }],
    ];
  },
  guess: ({ usage, input }) => ({
    ...usage,
    input: usage.input ?? input,
    audio_out: usage.audio_out ?? input * CHARACTERS_A_TOKEN * TOKENS_A_CHARACTER,
  }),
  extent: ({ input }) => ({ counts: charactersIn(input) }),
  maxBytes: BOUNDS.pictures.most,
  pricing: [
    '{ characters: "…" }',
    "dollars each, or { input: …, audio_out: … } per million tokens",
  ],
  examples: [
    { about: "1,000 characters", usage: { characters: 1_000 } },
    { about: "1,000 tokens in, 10,000 of sound out", usage: { input: 1_000, audio_out: 10_000 } },
  ],
  sample: (model) => ({
    kind: "speech",
    model,
    stream: true,
    input: "Hello",
    voice: "alloy",
    format: "wav",
    rest: {},
    ext: {},
  }),
};

/** As people count them: what is written with two halves in memory is one. */
export function charactersIn(text: string): { characters: number } {
  let characters = 0;
  for (const _ of text) characters++;
  return { characters };
}
