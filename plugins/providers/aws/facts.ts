// Models that must be listed to be asked. Those that rank are named by AWS's page on rerank (docs.aws.amazon.com/bedrock/latest/userguide,
// rerank-supported); of those that embed, AWS's pages were read for Cohere's third version only: the names of the others, and of those
// that draw, are as public code has them. What they cost is not said here: no source of AWS's own was read for it.
import type { Facts } from "tollgate/plugin";

export const facts: Facts = {
  asOf: "2026-11-23",
  models: [
    { model: "amazon.titan-embed-text-v1", operation: "embedding" },
    { model: "amazon.titan-embed-text-v2:0", operation: "embedding" },
    { model: "cohere.embed-english-v3", operation: "embedding" },
    { model: "cohere.embed-multilingual-v3", operation: "embedding" },
    { model: "cohere.embed-v4:0", operation: "embedding" },
    { model: "amazon.nova-canvas-v1:0", operation: "image", limits: { images: 5 } },
    { model: "amazon.titan-image-generator-v2:0", operation: "image", limits: { images: 5 } },
    { model: "stability.sd3-5-large-v1:0", operation: "image", limits: { images: 1 } },
    { model: "stability.stable-image-core-v1:1", operation: "image", limits: { images: 1 } },
    { model: "stability.stable-image-ultra-v1:1", operation: "image", limits: { images: 1 } },
    { model: "amazon.rerank-v1:0", operation: "rerank" },
    { model: "cohere.rerank-v3-5:0", operation: "rerank" },
  ],
};
