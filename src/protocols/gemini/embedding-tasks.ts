// What vectors are for, in Google's words: its own API and Vertex have the same.
import type { EmbeddingRequest } from "../../model/request.ts";
import type { LossReporter } from "../../plugin/protocol.ts";
import { taskNameFor, type TaskNames } from "../embeddings/index.ts";

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

/** How Google says it; the client is told of what it cannot say. */
export const embeddingTaskName = (
  { task }: EmbeddingRequest,
  of: LossReporter,
): string | undefined => taskNameFor(task, TASK_NAMES, of, "input_type");
