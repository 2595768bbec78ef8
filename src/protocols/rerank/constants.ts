// The protocol's name and the fields that it knows.
import { isMultiplierField } from "../requested-amounts.ts";

export const ID = "rerank";
export const VOYAGE_ID = "voyage-rerank";

/** Fields that the common form can express, under the same or another name. */
export const COMMON_FIELDS: readonly string[] = [
  "model",
  "query",
  "documents",
  "top_n",
  "top_k",
  "return_documents",
  "max_tokens_per_doc",
  "truncation",
  "stream",
  "user",
];

export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) || isMultiplierField(field);
