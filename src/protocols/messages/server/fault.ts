import { ERRORS, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { HeadersOut, JsonObject } from "../../../model/values.ts";
import type { ErrorResponse } from "../../../plugin/protocol.ts";
import type { LimitState } from "../../../plugin/store/limit.ts";
import { omitUndefinedOrNothing } from "../../json-values.ts";

/**
 * Error type in this protocol, and its status if that differs from the default of the error kind.
 */
const TYPE_AND_STATUS: Record<ErrorKind, readonly [type: string, status?: number]> = {
  invalid: ["invalid_request_error"],
  context_length: ["invalid_request_error"],
  content_policy: ["invalid_request_error"],
  unsupported: ["invalid_request_error"],
  unauthenticated: ["authentication_error"],
  forbidden: ["permission_error"],
  privacy: ["permission_error"],
  not_found: ["not_found_error"],
  conflict: ["conflict_error"],
  mismatch: ["invalid_request_error"],
  too_large: ["request_too_large"],
  quota: ["billing_error", 402],
  rate_limited: ["rate_limit_error"],
  overloaded: ["overloaded_error", 529],
  timeout: ["timeout_error"],
  upstream: ["api_error"],
  upstream_auth: ["api_error"],
  upstream_quota: ["api_error"],
  attestation: ["api_error"],
  unavailable: ["api_error"],
  canceled: ["api_error"],
  internal: ["api_error"],
};

const TOO_LONG = /prompt is too long|exceed context limit|prompt_too_long/;

export function encodeFault(f: Fault, { id }: { id: string }): ErrorResponse {
  const [type, status] = TYPE_AND_STATUS[f.kind];
  return {
    status: status ?? ERRORS[f.kind][0],
    body: {
      type: "error",
      error: { type, message: clientMessage(f), ...errorDetails(f) },
      request_id: id,
    },
  };
}

/**
 * Returns the client's message. Clients act on certain phrases: "prompt is too long" makes a client
 * compact its history.
 */
const clientMessage = (f: Fault): string =>
  f.kind === "context_length" && !TOO_LONG.test(f.message)
    ? `prompt is too long: ${f.message}`
    : f.message;

/** Returns the details of an error. SDKs branch on `details.error_code`. */
function errorDetails(f: Fault): { details?: JsonObject } {
  const details = omitUndefinedOrNothing({ error_code: f.code, param: f.param, ...f.details });
  return details ? { details } : {};
}

const BUCKETS = {
  requests: "requests",
  tokens: "tokens",
  input: "input-tokens",
  output: "output-tokens",
};

/** Encodes the request ID and, for each kind of limit, the one that is closest to exhaustion. */
export function encodeHeaders(of: { id: string; limits: readonly LimitState[] }): HeadersOut {
  const headers: Record<string, string> = { "request-id": of.id, "x-request-id": of.id };
  for (const [unit, name] of Object.entries(BUCKETS)) {
    let tightest: LimitState | undefined;
    for (const limit of of.limits)
      if (limit.unit === unit && (!tightest || limit.remaining < tightest.remaining))
        tightest = limit;
    if (!tightest) continue;
    const prefix = `anthropic-ratelimit-${name}`;
    headers[`${prefix}-limit`] = String(tightest.max);
    headers[`${prefix}-remaining`] = String(tightest.remaining < 0 ? 0 : tightest.remaining);
    headers[`${prefix}-reset`] = new Date(tightest.resetsAt).toISOString().replace(/\.\d+Z$/, "Z");
  }
  return headers;
}
