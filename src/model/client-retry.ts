// Decides whether and when a client should repeat a request. `retry-after`, `retry-after-ms`,
// `x-should-retry`, the last sentence of the message, and protocol-specific body fields are all
// derived from one value, so that they are consistent.
import type { ErrorKind, Fault } from "./error.ts";

/**
 * Whether a client should retry, by error kind. `yes`: the same request may succeed later.
 * `if_retry_after`: only if the fault contains a retry time. `no`: the request would fail in the
 * same way, or only an operator can fix the cause.
 */
export const CLIENT_RETRIES = {
  invalid: "no",
  context_length: "no",
  content_policy: "no",
  unsupported: "no",
  unauthenticated: "no",
  forbidden: "no",
  privacy: "no",
  not_found: "no",
  conflict: "if_retry_after",
  mismatch: "no",
  too_large: "no",
  quota: "no",
  rate_limited: "yes",
  overloaded: "yes",
  timeout: "yes",
  upstream: "yes",
  upstream_auth: "no",
  upstream_quota: "no",
  attestation: "no",
  unavailable: "yes",
  canceled: "no",
  internal: "no",
} as const satisfies Record<ErrorKind, "yes" | "if_retry_after" | "no">;

/** Delay in milliseconds if the time is not known. */
const DEFAULT_RETRY_MS = 1_000;
/**
 * Maximum delay in milliseconds with `x-should-retry: true`. With a longer delay, one SDK would
 * sleep for the whole time, and another would retry immediately and repeatedly.
 */
const MAX_CLIENT_WAIT_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Returns the time in whole milliseconds after which the same request may succeed. Undefined if it
 * would fail again.
 */
export function retryAfterMsFor({ kind, retryAfterMs }: Fault): number | undefined {
  const when = CLIENT_RETRIES[kind];
  const known = typeof retryAfterMs === "number" && retryAfterMs >= 0;
  if (when === "no" || (when === "if_retry_after" && !known)) return undefined;
  return Math.min(DAY_MS, Math.max(1, Math.ceil(known ? retryAfterMs : DEFAULT_RETRY_MS)));
}

const seconds = (ms: number): number => Math.ceil(ms / 1_000);

/** Returns the retry headers of an error response. `ms`: the result of `retryAfterMsFor`. */
export const retryHeaders = (ms: number | undefined): Record<string, string> =>
  ms === undefined
    ? { "x-should-retry": "false" }
    : {
        "retry-after": String(seconds(ms)),
        "retry-after-ms": String(ms),
        "x-should-retry": String(ms <= MAX_CLIENT_WAIT_MS),
      };

/**
 * Returns the fault in the form in which a client receives it. If the client should retry,
 * `retryAfterMs` is set and the message ends with the delay.
 */
export function withRetryHint(fault: Fault): Fault {
  const { retryAfterMs: _, ...rest } = fault;
  const ms = retryAfterMsFor(fault);
  if (ms === undefined) return rest;
  return { ...rest, retryAfterMs: ms, message: appendRetryHint(fault.message, ms) };
}

/** Appends the delay to a message. Messages must not mention it themselves. */
export const appendRetryHint = (message: string, ms: number): string =>
  `${/[.!?…]$/.test(message) ? message : `${message}.`} Retry after ${seconds(ms)} s.`;
