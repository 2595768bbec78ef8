// What both halves read in a request for vectors: a list of requests with one content each, or one such request alone.
import type { Embedding } from "../../model/request.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import { validateEmbeddings } from "../embeddings/index.ts";
import { asNumber, asObjects } from "../json-values.ts";
import { normalizeEmbeddingBody } from "./normalize-field-names.ts";

/** What a client said of each text that only this wire knows stands in `ext` under this name. */
export const EMBEDDING_EXT = "gemini-embedding";

/** One for each vector. */
export function embeddingRequestsIn(body: Body): readonly JsonObject[] {
  const fields = normalizeEmbeddingBody(body) as JsonObject;
  return fields["requests"] === undefined ? [fields] : asObjects(fields["requests"]);
}

/** The vectors of an answer, all of them and each as wide as it was asked for. Throws what makes it no answer. */
export function validateEmbeddingsFor(
  body: Body,
  vectors: readonly (Embedding | undefined)[],
): readonly Embedding[] {
  const widths = embeddingRequestsIn(body).map((one) => asNumber(one["outputDimensionality"]));
  const wish = { count: widths.length, dtype: "float", base64: false } as const;
  if (vectors.length !== widths.length || widths.every((width) => width === widths[0]))
    return validateEmbeddings(vectors, { ...wish, dimensions: widths[0] });
  return vectors.flatMap((one, i) =>
    validateEmbeddings([one], { ...wish, count: 1, dimensions: widths[i] }),
  );
}
