// Properties of a backend that its codecs do not need: the formats of its rate limit headers and of
// its errors. The codecs accept all of these formats from every provider. The properties serve
// readers, the table in the README, and the tests, which check each row against a sample of its
// formats.
import type { ProviderRow } from "tollgate/protocols/compatible";

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
