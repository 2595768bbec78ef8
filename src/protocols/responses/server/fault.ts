// Encodes errors in a stream of this protocol.
import type { ErrorKind, Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../plugin/index.ts";
import { clientMessage, openaiErrorType } from "../../failure/openai-error.ts";

/**
 * Error codes by which clients of this protocol decide whether to retry, compact the history, or
 * give up.
 */
const STREAM_ERROR_CODES: Readonly<Partial<Record<ErrorKind, string>>> = {
  rate_limited: "rate_limit_exceeded",
  quota: "insufficient_quota",
  context_length: "context_length_exceeded",
  content_policy: "invalid_prompt",
  invalid: "invalid_prompt",
  unsupported: "invalid_prompt",
  overloaded: "server_is_overloaded",
};
const KNOWN = new Set([
  "server_error",
  "usage_not_included",
  "slow_down",
  ...Object.values(STREAM_ERROR_CODES),
]);

export interface StreamFailure {
  /**
   * The `error` event. Some readers use the flat members, and some readers use the nested members.
   */
  event: JsonObject;
  /** The same error for `response.error`. */
  error: { code: string; message: string };
}

/** Returns the error for a stream that has already begun, when a status can no longer be sent. */
export function streamFailure(f: Fault, x: { id: string }): StreamFailure {
  const known = f.code !== undefined && KNOWN.has(f.code);
  const code = known ? f.code! : (STREAM_ERROR_CODES[f.kind] ?? "server_error");
  const message = clientMessage(f, x.id);
  const type = openaiErrorType(f.kind);
  return {
    event: { code, message, param: null, error: { type, code, message, param: null } },
    error: { code, message },
  };
}
