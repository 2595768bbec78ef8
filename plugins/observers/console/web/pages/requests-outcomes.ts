// Outcomes of calls in the ledger: ok, an error kind, or recovered after a crash. Each error kind
// has its HTTP status.

export const OUTCOME_STATUS: Readonly<Record<string, number | undefined>> = {
  ok: 200,
  invalid: 400,
  context_length: 400,
  content_policy: 400,
  unsupported: 400,
  unauthenticated: 401,
  forbidden: 403,
  privacy: 403,
  not_found: 404,
  conflict: 409,
  mismatch: 422,
  too_large: 413,
  quota: 429,
  rate_limited: 429,
  overloaded: 503,
  timeout: 504,
  upstream: 502,
  upstream_auth: 502,
  upstream_quota: 502,
  attestation: 502,
  unavailable: 503,
  canceled: 499,
  internal: 500,
  recovered: undefined,
};

/** Choices of the outcome filter. */
export const OUTCOMES: readonly (readonly [value: string, name: string])[] = [
  ["", "All"],
  ...Object.entries(OUTCOME_STATUS).map(
    ([outcome, status]) =>
      [outcome, status === undefined ? outcome : `${outcome} (${status})`] as const,
  ),
];
