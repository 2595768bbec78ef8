// Reads embedding requests for both halves. A body contains a list of requests with one content
// each, or a single request.
import type { Embedding, EmbeddingRequest } from "../../model/request.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import type { LossReporter } from "../../plugin/protocol.ts";
import { validateEmbeddings, taskNameFor, type TaskNames } from "../embeddings/index.ts";
import { normalizeEmbeddingBody } from "./normalize-field-names.ts";
import { asNumber, asObjects } from "../json-values.ts";

/** Key in `ext` for fields of each text that only this protocol has. */
export const EMBEDDING_EXT = "gemini-embedding";

/** Returns the requests, one for each vector. */
export function embeddingRequestsIn(body: Body): readonly JsonObject[] {
  const fields = normalizeEmbeddingBody(body) as JsonObject;
  return fields["requests"] === undefined ? [fields] : asObjects(fields["requests"]);
}

/**
 * Returns the vectors of a response. Throws if vectors are missing or do not have the requested
 * dimensions.
 */
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

/** Maps the purposes of vectors to Google's names, which its own API and Vertex share. */
const TASK_NAMES: TaskNames = {
  query: "RETRIEVAL_QUERY",
  document: "RETRIEVAL_DOCUMENT",
  classification: "CLASSIFICATION",
  clustering: "CLUSTERING",
  similarity: "SEMANTIC_SIMILARITY",
  question: "QUESTION_ANSWERING",
  fact: "FACT_VERIFICATION",
  code_query: "CODE_RETRIEVAL_QUERY",
};

/** Returns Google's name for a task. An approximated or dropped task is reported. */
export const embeddingTaskName = (
  { task }: EmbeddingRequest,
  of: LossReporter,
): string | undefined => taskNameFor(task, TASK_NAMES, of, "input_type");
