// Defines how a request ended, in one word, for every observer, page, and log line.
import type { ErrorKind } from "../../model/error.ts";
import type { RequestOutcome } from "../../plugin/observer.ts";
import type { Outcome } from "../../plugin/outcome.ts";
import { isLocalFault, isProviderFault } from "../faults/fault-source.ts";

const OUTCOME_BY_KIND = {
  invalid: "client_error",
  context_length: "client_error",
  content_policy: "client_error",
  unsupported: "client_error",
  unauthenticated: "refused",
  forbidden: "refused",
  privacy: "refused",
  not_found: "client_error",
  conflict: "client_error",
  mismatch: "client_error",
  too_large: "client_error",
  quota: "refused",
  rate_limited: "refused",
  overloaded: "upstream_error",
  timeout: "upstream_error",
  upstream: "upstream_error",
  upstream_auth: "upstream_error",
  upstream_quota: "upstream_error",
  attestation: "upstream_error",
  unavailable: "error",
  canceled: "canceled",
  internal: "error",
} as const satisfies Record<ErrorKind, RequestOutcome>;

/** Whether a failure of this kind is the client's own mistake. */
export const isClientError = (kind: string): boolean =>
  Object.hasOwn(OUTCOME_BY_KIND, kind) && OUTCOME_BY_KIND[kind as ErrorKind] === "client_error";

/**
 * Returns the outcome of a request. `isDisconnected`: whether the client disconnected before its
 * response was complete.
 */
export function outcomeOfRequest(
  { fault, status }: Pick<Outcome, "fault" | "status">,
  isDisconnected: boolean,
): RequestOutcome {
  if (!fault && isDisconnected) return "canceled";
  // The result of a route that its frontend serves is determined by the status.
  if (!fault) return status < 400 ? "ok" : status < 500 ? "client_error" : "error";
  const { kind } = fault;
  // A rate limit of the provider is not the client's mistake. A rejection by the overloaded gateway
  // is not the provider's failure.
  if (kind === "rate_limited" && isProviderFault(fault)) return "upstream_error";
  if (kind === "overloaded" && isLocalFault(fault)) return "error";
  // The client's own timeout passed.
  if (kind === "timeout" && isLocalFault(fault)) return "canceled";
  return OUTCOME_BY_KIND[kind];
}
