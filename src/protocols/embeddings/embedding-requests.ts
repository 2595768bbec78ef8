// Converts requests for vectors between the formats of vendors: purposes, fields, and inputs.
import { fail } from "../../model/error.ts";
import type { EmbeddingTask, EmbeddingRequest } from "../../model/request.ts";
import type { Opt } from "../../model/values.ts";
import type { LossReporter } from "../../plugin/protocol.ts";
import { asObject, ownEntry } from "../json-values.ts";

/**
 * Maps the purposes of vectors to the vendors' names. Names of all vendors are accepted, and each
 * protocol writes its vendor's names.
 */
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

/**
 * Returns the task for a name. Returns undefined for an unknown name, which may be newer than the
 * gateway.
 */
export const parseTask = (word: unknown): EmbeddingTask | undefined =>
  typeof word === "string" ? ownEntry(TASK_BY_NAME, word.toLowerCase()) : undefined;

/**
 * Names of the tasks in one protocol. A task without a name is sent as the nearest task or omitted.
 */
export type TaskNames = { readonly [task in EmbeddingTask]?: string };

/** Nearest tasks. A text that is used to search is a query, whatever its purpose. */
const NEAREST: TaskNames = { question: "query", fact: "query", code_query: "query" };

/**
 * Returns the protocol's name for a task. An approximated or dropped task is reported.
 *
 * @param field Name of the field in the client's request.
 */
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

/**
 * Formats with fields that only their own clients send. Google has such fields per text, for
 * example a title. Cohere has them per request.
 */
const FORMATS = ["gemini-embedding", "cohere-embed"];

/**
 * Reports the fields of other formats as dropped.
 *
 * @param own The format that is being encoded.
 */
export function reportForeignFields(
  { ext }: EmbeddingRequest,
  of: LossReporter,
  own?: string,
): void {
  const reported = new Set<string>();
  for (const id of FORMATS)
    if (id !== own)
      for (const one of [ext[id] ?? []].flat())
        for (const field in asObject(one)) if (!reported.has(field)) reported.add(field);
  for (const field of reported) of.reportLoss(field, "dropped");
}

/**
 * Returns the inputs of a request to a model that reads only text. Throws if an input consists of
 * token IDs. They belong to another tokenizer and cannot be converted to text.
 */
export const requireTextInputs = (
  { inputs }: EmbeddingRequest,
  { model }: { readonly model: string },
): readonly string[] =>
  inputs.map((input) =>
    typeof input === "string"
      ? input
      : fail("unsupported", `${model} supports text, not token IDs.`, {
          param: "input",
          code: "unsupported_input",
        }),
  );
