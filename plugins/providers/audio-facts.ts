import type { ModelInfo } from "tollgate/plugin";

/** A model that speaks. `price`: a million tokens of text and of sound, as its maker publishes it; absent: it is not known. */
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

/** A model that writes down what it hears. `usd`: a million seconds, for what one costs has more places than money is read with. */
export const transcriptionModel = (model: string, usd?: string): ModelInfo => ({
  model,
  operation: "transcript",
  ...(usd !== undefined && { price: { lines: [{ unit: "seconds", usd, per: 1_000_000 }] } }),
});
