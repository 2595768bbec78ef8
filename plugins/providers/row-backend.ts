// What a row says of a backend beside what its codecs need: how it tells its limits and words its errors. The codecs read
// every one of these forms from every provider; here they stand for people, for the table in the README, and for the tests,
// which hold each row against a sample of what it names.
import type { ProviderRow } from "tollgate/protocols/compatible";

/** Headers that say how much is left, and when there will be more. */
export type Limits =
  /** x-ratelimit-{limit,remaining,reset}-{requests,tokens}, with resets like "6m0s" and "20ms". */
  | "openai"
  /** anthropic-ratelimit-*, with resets as dates. */
  | "anthropic"
  /** By day and by minute, with resets in seconds and fractions of them. */
  | "cerebras"
  /** x-ratelimit-limit-req-minute, and their like. */
  | "mistral"
  /** x-ratelimit-reset in seconds; x-tokenlimit-* beside it. */
  | "together"
  /** Tokens of the prompt and of the answer apart. */
  | "fireworks"
  /** x-ratelimit-reset as a moment, in milliseconds. */
  | "openrouter"
  /** At most retry-after. */
  | "none";

/** The body around an error's words. */
export type Errors =
  /** {error: {message, type, param, code}} */
  | "openai"
  /** {type: "error", error: {type, message}} */
  | "anthropic"
  /** {object: "error", message, type, code}, or {detail: [{loc, msg}]} */
  | "flat"
  /** {message} */
  | "message"
  /** {error: "words"}, with or without a code */
  | "words"
  /** {base_resp: {status_code, status_msg}}, with status 200 around it */
  | "base_resp"
  /** {errors: [{code, message}], success: false} */
  | "errors";

export interface Backend extends ProviderRow {
  limits: Limits;
  errors: Errors;
}
