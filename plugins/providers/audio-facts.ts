import type { ModelInfo } from "tollgate/plugin";

/**
 * Creates a speech model. `price` is the vendor's published price per million tokens of text and of
 * audio. If unset, the price is unknown.
 */
export const speechModel = (
  model: string,
  { price, retires }: { price?: { input: string; audio_out: string }; retires?: string },
): ModelInfo => ({
  model,
  operation: "speech",
  ...(retires !== undefined && { retires }),
  ...(price && {
    price: {
      lines: [
        { unit: "input", usd: price.input, per: 1_000_000 },
        { unit: "audio_out", usd: price.audio_out, per: 1_000_000 },
      ],
    },
  }),
});

/**
 * Creates a transcription model. `usd` is the price per million seconds, because the price of one
 * second has more decimals than the gateway supports.
 */
export const transcriptionModel = (model: string, usd?: string): ModelInfo => ({
  model,
  operation: "transcript",
  ...(usd !== undefined && { price: { lines: [{ unit: "seconds", usd, per: 1_000_000 }] } }),
});
