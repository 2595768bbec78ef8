// Models that must be listed to be asked, by the names that AWS documents: those that embed (docs.aws.amazon.com/bedrock/latest/userguide,
// model-ids and model-parameters-embed) and those that rank (the same, rerank-supported). What they cost is not said here: no source
// of AWS's own was read for it.
import type { Facts } from "tollgate/plugin";

export const facts: Facts = {
  asOf: "2026-11-23",
  models: [
    { model: "amazon.titan-embed-text-v1", kind: "embedding" },
    { model: "amazon.titan-embed-text-v2:0", kind: "embedding" },
    { model: "cohere.embed-english-v3", kind: "embedding" },
    { model: "cohere.embed-multilingual-v3", kind: "embedding" },
    { model: "cohere.embed-v4:0", kind: "embedding" },
    { model: "amazon.rerank-v1:0", kind: "rerank" },
    { model: "cohere.rerank-v3-5:0", kind: "rerank" },
  ],
};
