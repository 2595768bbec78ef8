// Properties that many backends have in common, so that a row contains only its differences.
import type { ChatDialect } from "tollgate/protocols/chat-completions";

/** OpenAI-specific fields that most other backends reject or do not support. */
export const OPENAI_ONLY = [
  "store",
  "metadata",
  "service_tier",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "prompt_cache_options",
  "prediction",
  "moderation",
  "verbosity",
] as const;

/** A backend that implements the protocol without its latest additions. */
export const plain: ChatDialect = {
  maxTokens: "max_tokens",
  developerRole: false,
  strictTools: false,
  customTools: false,
  dropFields: OPENAI_ONLY,
};

/** Returns the OpenAI-specific fields except those that the backend supports. */
export const but = (...known: readonly string[]): readonly string[] =>
  OPENAI_ONLY.filter((field) => !known.includes(field));

/** Row properties of a third party's messages endpoint. */
export const anthropicAt = (base: string) =>
  ({ base, header: "x-api-key", thinking: "budget" }) as const;
