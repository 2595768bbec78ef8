// Maps the purposes of vectors to Google's names, which its own API and Vertex share.
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

/** Returns Google's name for a task. An approximated or dropped task is reported. */
export const embeddingTaskName = (
  { task }: EmbeddingRequest,
  of: LossReporter,
): string | undefined => taskNameFor(task, TASK_NAMES, of, "input_type");
