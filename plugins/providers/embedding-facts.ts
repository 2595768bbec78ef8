import type { ModelInfo } from "tollgate/plugin";

/** A model that makes vectors. `usd`: for a million tokens, as its maker publishes it. */
export const embeddingModel = (model: string, usd?: string): ModelInfo => ({
  model,
  operation: "embedding",
  ...(usd !== undefined && { price: { lines: [{ unit: "input", usd, per: 1_000_000 }] } }),
});

/** A model that ranks. `price`: a search, or a million tokens, as its maker publishes it. */
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

/** A model that judges. `usd`: a request, as its maker publishes it. */
export const moderationModel = (model: string, usd?: string): ModelInfo => ({
  model,
  operation: "moderation",
  ...(usd !== undefined && { price: { lines: [{ unit: "requests", usd, per: 1 }] } }),
});
