// What vectors are for, in the vendors' words. One vocabulary is read, whichever vendor's it is; each wire writes its own.
import type { EmbeddingTask } from "../../model/request.ts";
import type { Opt } from "../../model/values.ts";
import type { LossReporter } from "../../plugin/protocol.ts";
import { ownEntry } from "../own-entry.ts";

const TASK_BY_NAME: { readonly [word: string]: EmbeddingTask } = {
  query: "query",
  search_query: "query",
  retrieval_query: "query",
  "retrieval.query": "query",
  document: "document",
  passage: "document",
  search_document: "document",
  retrieval_document: "document",
  "retrieval.passage": "document",
  classification: "classification",
  clustering: "clustering",
  separation: "clustering",
  similarity: "similarity",
  semantic_similarity: "similarity",
  "text-matching": "similarity",
  question_answering: "question",
  fact_verification: "fact",
  code_retrieval_query: "code_query",
};

/** Undefined: a word that is newer than us, or none. */
export const parseTask = (word: unknown): EmbeddingTask | undefined =>
  typeof word === "string" ? ownEntry(TASK_BY_NAME, word.toLowerCase()) : undefined;

/** A wire's words. A task without one is said with the nearest, or not at all. */
export type TaskNames = { readonly [task in EmbeddingTask]?: string };

/** What a text is looked up with is a question, whatever is asked. */
const NEAREST: TaskNames = { question: "query", fact: "query", code_query: "query" };

/** How this wire says it; the client is told of what it cannot say. `field`: as the client names it. */
export function taskNameFor(
  task: Opt<EmbeddingTask>,
  words: TaskNames,
  of: LossReporter,
  field: string,
): string | undefined {
  if (task === undefined) return undefined;
  const own = words[task];
  if (own !== undefined) return own;
  const near = NEAREST[task];
  const nearest = near === undefined ? undefined : words[near as EmbeddingTask];
  of.reportLoss(field, nearest === undefined ? "dropped" : "approximated", "task_unknown");
  return nearest;
}
