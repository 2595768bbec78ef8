// ID of this protocol and its known fields.
import { isMultiplierField } from "../requested-amounts.ts";

export const ID = "completions";

/** Fields that the common form can represent. */
export const COMMON_FIELDS: readonly string[] = [
  "model",
  "prompt",
  "suffix",
  "max_tokens",
  "stop",
  "temperature",
  "top_p",
  "seed",
  "n",
  "presence_penalty",
  "frequency_penalty",
  "stream",
  "user",
];

/** Fields that only this protocol documents. They are sent back only in this protocol. */
export const PROTOCOL_FIELDS: readonly string[] = [
  "echo",
  "best_of",
  "logprobs",
  "logit_bias",
  "stream_options",
];

export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) || PROTOCOL_FIELDS.includes(field) || isMultiplierField(field);
