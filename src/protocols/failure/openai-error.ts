// Encodes errors for OpenAI's protocols: chat completions, responses, and images. SDKs choose their
// error class by the status. People and tools read the type and the code.
import { ERRORS, type ErrorKind, type Fault } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { ErrorResponse } from "../../plugin/protocol.ts";

/** Error type, and the code for an error without its own code. */
const TYPE_AND_CODE: { readonly [K in ErrorKind]: readonly [type: string, code: string | null] } = {
  invalid: ["invalid_request_error", null],
  context_length: ["invalid_request_error", "context_length_exceeded"],
  content_policy: ["invalid_request_error", "content_policy_violation"],
  unsupported: ["invalid_request_error", "unsupported_parameter"],
  unauthenticated: ["authentication_error", "invalid_api_key"],
  forbidden: ["permission_error", "permission_denied"],
  privacy: ["permission_error", "privacy"],
  not_found: ["invalid_request_error", "not_found"],
  conflict: ["conflict_error", "conflict"],
  mismatch: ["invalid_request_error", "mismatch"],
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

export const openaiErrorType = (kind: ErrorKind): string => TYPE_AND_CODE[kind][0];

/**
 * Returns the error object. Four members are always present. The details of an error are added if
 * there are any.
 */
export function openaiError({ kind, message, code, param, details }: Fault): JsonObject {
  const [type, usual] = TYPE_AND_CODE[kind];
  return {
    message,
    type,
    param: param ?? null,
    code: code ?? usual,
    ...(details && { details }),
  };
}

/** Encodes the gateway's errors for protocols of the OpenAI family. */
export const encodeFault = (f: Fault, x: { id: string }): ErrorResponse => ({
  status: ERRORS[f.kind][0],
  body: { error: openaiError({ ...f, message: clientMessage(f, x.id) }) },
});

/**
 * Returns the client's message. Internal details are only logged, and the client gets the ID that
 * finds the log entry.
 */
export const clientMessage = (f: Fault, id: string): string =>
  f.kind === "internal" ? `Internal error in the gateway. Reference: ${id}` : f.message;
