// Encodes errors in the form of Google's APIs: a status name, and details with their types.
import { ERRORS, type ErrorKind, type Fault } from "../../../model/error.ts";
import type { HeadersOut, JsonObject } from "../../../model/values.ts";
import type { ErrorResponse } from "../../../plugin/protocol.ts";
import { isObject, omitUndefinedOrNothing } from "../../json-values.ts";

const STATUS: Record<ErrorKind, string> = {
  invalid: "INVALID_ARGUMENT",
  context_length: "INVALID_ARGUMENT",
  content_policy: "INVALID_ARGUMENT",
  unsupported: "INVALID_ARGUMENT",
  unauthenticated: "UNAUTHENTICATED",
  forbidden: "PERMISSION_DENIED",
  privacy: "PERMISSION_DENIED",
  not_found: "NOT_FOUND",
  conflict: "ABORTED",
  mismatch: "FAILED_PRECONDITION",
  too_large: "INVALID_ARGUMENT",
  quota: "RESOURCE_EXHAUSTED",
  rate_limited: "RESOURCE_EXHAUSTED",
  overloaded: "UNAVAILABLE",
  timeout: "DEADLINE_EXCEEDED",
  upstream: "UNAVAILABLE",
  upstream_auth: "UNAVAILABLE",
  upstream_quota: "UNAVAILABLE",
  attestation: "UNAVAILABLE",
  unavailable: "UNAVAILABLE",
  canceled: "CANCELLED",
  internal: "INTERNAL",
};

export const encodeFault = (f: Fault, x: { status?: number }): ErrorResponse => ({
  body: faultBody(f, x.status),
});

export const faultBody = (f: Fault, status: number = ERRORS[f.kind][0]): JsonObject => ({
  error: {
    code: status,
    message: f.message,
    status: STATUS[f.kind],
    details: detailsOf(f),
  },
});

const TYPE = "type.googleapis.com/google.rpc.";

function detailsOf(f: Fault): JsonObject[] {
  const { limit, ...more } = f.details ?? {};
  const metadata = omitUndefinedOrNothing({
    param: f.param,
    ...Object.fromEntries(Object.entries(more).map(([name, value]) => [name, worded(value)])),
  });
  const details: JsonObject[] = [
    {
      "@type": `${TYPE}ErrorInfo`,
      reason: f.code ?? f.kind,
      domain: "tollgate",
      ...(metadata && { metadata }),
    },
  ];
  // A client that finds a daily quota stops immediately. Otherwise, it would retry until the budget
  // is available again.
  if (f.kind === "quota")
    details.push({
      "@type": `${TYPE}QuotaFailure`,
      violations: [
        {
          subject: text(isObject(limit) ? limit["scope"] : undefined),
          quotaId: "BudgetPerDayOrLonger",
          description: f.message,
        },
      ],
    });
  if (f.param !== undefined)
    details.push({
      "@type": `${TYPE}BadRequest`,
      fieldViolations: [{ field: f.param, description: f.message }],
    });
  if (f.retryAfterMs !== undefined && f.kind !== "quota")
    details.push({
      "@type": `${TYPE}RetryInfo`,
      retryDelay: `${Math.ceil(f.retryAfterMs) / 1000}s`,
    });
  return details;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Values of error metadata must be strings. */
const worded = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "");

/** Returns the response headers. This protocol has no headers for rate limits. */
export const head = ({ id }: { id: string }): HeadersOut => ({ "x-request-id": id });
