// Errors in this protocol's own shape: four members, always there. What there is more to say stands beside them.
import type { ErrorKind, Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ErrorAnswer } from "../../../plugin/protocol.ts";

/** [type, code unless the fault has its own]. SDKs make their error classes of the status; people and tools read these. */
const WORDS: { readonly [K in ErrorKind]: readonly [type: string, code: string | null] } = {
  invalid: ["invalid_request_error", null],
  context_length: ["invalid_request_error", "context_length_exceeded"],
  content_policy: ["invalid_request_error", "content_policy_violation"],
  unsupported: ["invalid_request_error", "unsupported_parameter"],
  unauthenticated: ["authentication_error", "invalid_api_key"],
  forbidden: ["permission_error", "permission_denied"],
  privacy: ["permission_error", "privacy"],
  not_found: ["invalid_request_error", "not_found"],
  conflict: ["conflict_error", "conflict"],
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

export function faultBody({ kind, message, code, param, details }: Fault): JsonObject {
  const [type, usual] = WORDS[kind];
  return {
    error: {
      message,
      type,
      param: param ?? null,
      code: code ?? usual,
      ...(details && { details }),
    },
  };
}

export const fault = (of: Fault): ErrorAnswer => ({ body: faultBody(of) });

/** In a stream an error is a chunk that is no chunk: SDKs raise on it. No `[DONE]` follows, because nothing was done. */
export const faultChunk = (of: Fault): string => `data: ${JSON.stringify(faultBody(of))}\n\n`;
