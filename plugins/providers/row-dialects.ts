// What many backends have in common, so that a row says only what is its own.
import type { ChatDialect } from "tollgate/protocols/chat-completions";

/** Fields of OpenAI's own that most others answer with an error or do not know. */
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

/** A backend that took the protocol over as it was before its last additions. */
export const plain: ChatDialect = {
  maxTokens: "max_tokens",
  developerRole: false,
  strictTools: false,
  customTools: false,
  dropFields: OPENAI_ONLY,
};

/** The same, without those fields of the list that this one does know. */
export const but = (...known: readonly string[]): readonly string[] =>
  OPENAI_ONLY.filter((field) => !known.includes(field));

/** What a third party's messages endpoint asks of a row. */
export const anthropicAt = (base: string) =>
  ({ base, header: "x-api-key", thinking: "budget" }) as const;
