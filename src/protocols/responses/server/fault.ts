// The gateway's errors in this protocol's shape.
import { ERRORS, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { JsonObject, ErrorAnswer } from "../../../plugin/index.ts";
import { openaiError, typeOf } from "../../failure/openai-error.ts";

export const fault = (f: Fault, x: { id: string }): ErrorAnswer => ({
  status: ERRORS[f.kind][0],
  body: { error: openaiError({ ...f, message: wording(f, x.id) }) },
});

/** What went wrong inside is for the log; the client gets the id that finds it there. */
const wording = (f: Fault, id: string): string =>
  f.kind === "internal" ? `Something went wrong inside the gateway. Reference: ${id}` : f.message;

/** Words by which clients of this protocol decide whether to try again, compact, or give up. */
const STREAMED: Readonly<Partial<Record<ErrorKind, string>>> = {
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
  ...Object.values(STREAMED),
]);

export interface Failure {
  /** The `error` event: some readers take the flat form, some the nested one. */
  event: JsonObject;
  /** The same in `response.error`. */
  error: { code: string; message: string };
}

/** A failure once the stream has begun: no status is left to say it with. */
export function failure(f: Fault, x: { id: string }): Failure {
  const known = f.code !== undefined && KNOWN.has(f.code);
  const code = known ? f.code! : (STREAMED[f.kind] ?? "server_error");
  const message = wording(f, x.id);
  const type = typeOf(f.kind);
  return {
    event: { code, message, param: null, error: { type, code, message, param: null } },
    error: { code, message },
  };
}
