// Properties of a backend that its codecs do not need: the formats of its rate limit headers and of
// its errors. The codecs accept all of these formats from every provider. They are used in the
// README's table and in tests, which check each row against a sample of its formats.
import type { ProviderRow } from "tollgate/protocols/compatible";
import type { ChatDialect } from "tollgate/protocols/chat-completions";

/** Formats of the headers with the remaining limits and their reset times. */
export type Limits =
  /** x-ratelimit-{limit,remaining,reset}-{requests,tokens}, with resets like "6m0s" and "20ms". */
  | "openai"
  /** anthropic-ratelimit-*, with resets as dates. */
  | "anthropic"
  /** Limits per day and per minute, with resets in fractional seconds. */
  | "cerebras"
  /** Headers such as x-ratelimit-limit-req-minute. */
  | "mistral"
  /** x-ratelimit-reset in seconds, and x-tokenlimit-*. */
  | "together"
  /** Separate limits for prompt tokens and output tokens. */
  | "fireworks"
  /** x-ratelimit-reset as Unix milliseconds. */
  | "openrouter"
  /** No limit headers, except possibly retry-after. */
  | "none";

/** Formats of error bodies. */
export type Errors =
  /** {error: {message, type, param, code}} */
  | "openai"
  /** {type: "error", error: {type, message}} */
  | "anthropic"
  /** {object: "error", message, type, code}, or {detail: [{loc, msg}]} */
  | "flat"
  /** {message} */
  | "message"
  /** {error: "message"}, with or without a code */
  | "words"
  /** {base_resp: {status_code, status_msg}}, with HTTP status 200 */
  | "base_resp"
  /** {errors: [{code, message}], success: false} */
  | "errors";

export interface Backend extends ProviderRow {
  limits: Limits;
  errors: Errors;
}

// Properties that many backends have in common, so that a row contains only its differences.

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
