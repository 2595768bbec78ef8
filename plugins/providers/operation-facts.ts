import type { ModelInfo } from "tollgate/plugin";

/** Creates an embedding model. `usd` is the vendor's published price per million tokens. */
export const embeddingModel = (model: string, usd?: string): ModelInfo => ({
  model,
  operation: "embedding",
  ...(usd !== undefined && { price: { lines: [{ unit: "input", usd, per: 1_000_000 }] } }),
});

/**
 * Creates a rerank model. `price` is the vendor's published price per search or per million tokens.
 */
export const rerankModel = (
  model: string,
  price: { searches: string } | { input: string },
): ModelInfo => ({
  model,
  operation: "rerank",
  price: {
    lines: [
      "searches" in price
        ? { unit: "searches", usd: price.searches, per: 1 }
        : { unit: "input", usd: price.input, per: 1_000_000 },
    ],
  },
});

/** Creates a moderation model. `usd` is the vendor's published price per request. */
export const moderationModel = (model: string, usd?: string): ModelInfo => ({
  model,
  operation: "moderation",
  ...(usd !== undefined && { price: { lines: [{ unit: "requests", usd, per: 1 }] } }),
});

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
