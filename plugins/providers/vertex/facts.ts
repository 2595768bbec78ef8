// Models that must be listed to be asked: those that embed text, as Google's page of the text embeddings API names them
// (cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api). What they cost is not said here.
import type { Facts } from "tollgate/plugin";

export const facts: Facts = {
  asOf: "2026-11-24",
  models: [
    { model: "gemini-embedding-001", operation: "embedding" },
    { model: "text-embedding-005", operation: "embedding" },
    { model: "text-multilingual-embedding-002", operation: "embedding" },
  ],
};
