import { measureAudio } from "../../lib/sound/audio-duration.ts";
import type { CostFactors, OperationSpec } from "./operation-spec.ts";

/** Bytes per second of the most compressed speech. */
const BYTES_A_SECOND = 750;
/** Bytes per token, by which input tokens are estimated. */
const BYTES_A_TOKEN = 3;
/**
 * Input and output tokens per second of audio. Providers that bill in tokens count 10 to 17 per
 * second of audio, and people speak fewer than 10 per second.
 */
const HEARD_A_SECOND = 20;
const WRITTEN_A_SECOND = 10;

/** Transcription. Used as `operation` by every transcription protocol. */
export const transcriptOperation: OperationSpec<"transcript"> = {
  name: "transcript",
  noun: "a transcription model",
  outputModality: "transcripts",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["seconds"], ["input", "output"], ["audio_in", "output"]],
  // Measured in seconds or in tokens of audio and text, depending on the price.
  estimateUsage({ input, exactUsage, expectedUsage, maxUsage, isWorstCase }) {
    const seconds = isWorstCase
      ? (maxUsage.seconds ?? Math.ceil(input / BYTES_A_SECOND))
      : (exactUsage.seconds ??
        expectedUsage.seconds ??
        Math.ceil((input * BYTES_A_TOKEN) / BYTES_A_SECOND));
    return [
      [{ units: ["seconds"], count: seconds }],
      [
        { units: ["audio_in", "input"], count: seconds * HEARD_A_SECOND },
        { units: ["input"], count: isWorstCase ? (maxUsage.input ?? 0) : 0, optional: true },
        { units: ["output"], count: seconds * WRITTEN_A_SECOND },
      ],
    ];
  },
  estimateMissingUsage: ({ usage, inputTokens, expectedUsage }) => ({
    ...usage,
    seconds:
      usage.seconds ??
      expectedUsage.seconds ??
      Math.ceil((inputTokens * BYTES_A_TOKEN) / BYTES_A_SECOND),
  }),
  analyzeCost: ({ file, prompt }) => estimateAudioUsage(file.data, prompt),
  pricingHint: [
    '{ seconds: "…" }',
    "dollars each, or { audio_in: …, output: … } per million tokens",
  ],
  priceExamples: [
    { description: "one minute of audio", usage: { seconds: 60 } },
    { description: "1,000 audio tokens in, 200 out", usage: { audio_in: 1_000, output: 200 } },
  ],
  sampleRequest: (model) => ({
    operation: "transcript",
    model,
    stream: false,
    file: { filename: "silence.wav", mime: "audio/wav", data: silence() },
    granularities: [],
    rest: {},
    ext: {},
  }),
};

/**
 * Returns the duration in seconds, rounded up, and the size of the text that is read with the
 * audio, at one byte per token.
 */
export function estimateAudioUsage(
  file: Buffer,
  words = "",
): Pick<CostFactors, "exactUsage" | "expectedUsage" | "maxUsage"> {
  const { seconds, estimatedSeconds, maxSeconds } = measureAudio(file);
  return {
    exactUsage: seconds === undefined ? undefined : { seconds: Math.ceil(seconds) },
    expectedUsage: { seconds: Math.ceil(estimatedSeconds) },
    maxUsage: { seconds: Math.ceil(maxSeconds), input: Buffer.byteLength(words) },
  };
}

/** Returns 1 s of silence: WAV with 8,000 samples of one byte. */
function silence(): Buffer {
  const rate = 8_000;
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + rate, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36);
  head.writeUInt32LE(rate, 40);
  return Buffer.concat([head, Buffer.alloc(rate, 128)]);
}
