// The words of this wire: its name, and the fields that it knows.
import { isMultiplierField } from "../requested-amounts.ts";

export const ID = "embeddings";

/** In the common vocabulary, under another name or the same. */
export const COMMON_FIELDS: readonly string[] = [
  "model",
  "input",
  "dimensions",
  "output_dimension",
  "output_dtype",
  "truncate",
  "truncation",
  "stream",
  "user",
];

/** How the numbers are written is between a client and this wire: another wire has a form of its own. */
export const ENCODING_FORMAT = "encoding_format";

/** Where clients and hosts say what the vectors are for; OpenAI has no field for it. */
export const TASK_FIELDS = ["input_type", "task_type", "task"] as const;

/** All that this wire knows, in any dialect of it. */
export const knowsField = (field: string): boolean =>
  field === ENCODING_FORMAT ||
  COMMON_FIELDS.includes(field) ||
  (TASK_FIELDS as readonly string[]).includes(field) ||
  isMultiplierField(field);
