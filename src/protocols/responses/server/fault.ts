// The service's errors in this protocol's shape.
import { ERRORS, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { JsonObject, ErrorAnswer } from "../../../plugin/index.ts";
import { present } from "../words.ts";

/** This protocol's type and code; a code of the fault's own is more precise. */
const WORDS: Readonly<Record<ErrorKind, readonly [type: string, code: string | null]>> = {
  invalid: ["invalid_request_error", null],
  context_length: ["invalid_request_error", "context_length_exceeded"],
  content_policy: ["invalid_request_error", "content_policy_violation"],
  unsupported: ["invalid_request_error", "unsupported_parameter"],
  unauthenticated: ["authentication_error", "invalid_api_key"],
  forbidden: ["permission_error", null],
  privacy: ["permission_error", null],
  not_found: ["invalid_request_error", null],
  conflict: ["conflict_error", null],
  too_large: ["invalid_request_error", "request_too_large"],
  quota: ["insufficient_quota", "insufficient_quota"],
  rate_limited: ["rate_limit_error", "rate_limit_exceeded"],
  overloaded: ["server_error", "overloaded"],
  timeout: ["timeout_error", "timeout"],
  upstream: ["server_error", "upstream_error"],
  upstream_auth: ["server_error", "upstream_auth"],
  upstream_quota: ["server_error", "upstream_quota"],
  attestation: ["server_error", "attestation_failed"],
  unavailable: ["server_error", "unavailable"],
  canceled: ["server_error", "canceled"],
  internal: ["server_error", "internal_error"],
};

export function fault(f: Fault, x: { id: string }): ErrorAnswer {
  const [type, code] = WORDS[f.kind];
  const message = wording(f, x.id);
  return {
    status: ERRORS[f.kind][0],
    body: {
      error: present({
        message,
        type,
        param: f.param ?? null,
        code: f.code ?? code,
        details: f.details,
      }),
    },
  };
}

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
  const type = WORDS[f.kind][0];
  return {
    event: { code, message, param: null, error: { type, code, message, param: null } },
    error: { code, message },
  };
}
