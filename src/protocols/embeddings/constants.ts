// ID of this protocol and its known fields.
import { isMultiplierField } from "../requested-amounts.ts";

export const ID = "embeddings";

/** Fields that the common form can represent. */
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

/**
 * Field for the encoding of vectors. It exists only in this protocol, because other protocols have
 * their own forms.
 */
export const ENCODING_FORMAT = "encoding_format";

/** Fields that state the purpose of the vectors. OpenAI has no such field. */
export const TASK_FIELDS = ["input_type", "task_type", "task"] as const;

/** Whether this protocol has a field, in any dialect. */
export const knowsField = (field: string): boolean =>
  field === ENCODING_FORMAT ||
  COMMON_FIELDS.includes(field) ||
  (TASK_FIELDS as readonly string[]).includes(field) ||
  isMultiplierField(field);
