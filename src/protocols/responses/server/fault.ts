// The gateway's errors in this protocol's shape.
import { ERRORS, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { JsonObject, ErrorResponse } from "../../../plugin/index.ts";
import { openaiError, openaiErrorType } from "../../failure/openai-error.ts";

export const encodeFault = (f: Fault, x: { id: string }): ErrorResponse => ({
  status: ERRORS[f.kind][0],
  body: { error: openaiError({ ...f, message: clientMessage(f, x.id) }) },
});

/** What went wrong inside is for the log; the client gets the id that finds it there. */
const clientMessage = (f: Fault, id: string): string =>
  f.kind === "internal" ? `Something went wrong inside the gateway. Reference: ${id}` : f.message;

/** Words by which clients of this protocol decide whether to try again, compact, or give up. */
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
  /** The `error` event: some readers take the flat form, some the nested one. */
  event: JsonObject;
  /** The same in `response.error`. */
  error: { code: string; message: string };
}

/** A failure once the stream has begun: no status is left to say it with. */
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
