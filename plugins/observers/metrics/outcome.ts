// What became of a request, in the few words that objectives are written in.
import type { ErrorKind, RequestRecord } from "tollgate/plugin";

export const OUTCOMES = [
  "ok",
  "client_error",
  "refused",
  "upstream_error",
  "error",
  "canceled",
] as const;
export type RequestOutcome = (typeof OUTCOMES)[number];

const OF: Readonly<Record<ErrorKind, RequestOutcome>> = {
  invalid: "client_error",
  context_length: "client_error",
  content_policy: "client_error",
  unsupported: "client_error",
  not_found: "client_error",
  conflict: "client_error",
  mismatch: "client_error",
  too_large: "client_error",
  unauthenticated: "refused",
  forbidden: "refused",
  privacy: "refused",
  quota: "refused",
  rate_limited: "upstream_error",
  overloaded: "upstream_error",
  timeout: "upstream_error",
  upstream: "upstream_error",
  upstream_auth: "upstream_error",
  upstream_quota: "upstream_error",
  attestation: "upstream_error",
  unavailable: "error",
  internal: "error",
  canceled: "canceled",
};

export function outcomeOf({ status, fault, calls }: RequestRecord): RequestOutcome {
  if (!fault) return status < 400 ? "ok" : status < 500 ? "client_error" : "error";
  // Too many requests: of a client before a provider was asked, of all clients after it.
  if (fault.kind === "rate_limited" && calls.length === 0) return "refused";
  return OF[fault.kind] ?? "error";
}
