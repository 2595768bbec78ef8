// The words of this wire: its name, and the fields that it knows.
import { isMultiplierField } from "../requested-amounts.ts";

export const ID = "completions";

/** In the common vocabulary, under another name or the same. */
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

/** Documented here and nowhere else: they go back to this wire only. */
export const PROTOCOL_FIELDS: readonly string[] = [
  "echo",
  "best_of",
  "logprobs",
  "logit_bias",
  "stream_options",
];

export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) || PROTOCOL_FIELDS.includes(field) || isMultiplierField(field);
