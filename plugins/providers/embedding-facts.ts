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
