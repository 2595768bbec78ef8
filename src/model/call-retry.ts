// Retry rules after a failed call, as data. `ERRORS` determines, by error kind, whether another
// candidate may be called. This table determines, by error kind and progress of the call, whether
// the same target may be called again and how the call is recorded in the ledger.
import type { ErrorKind } from "./error.ts";

/**
 * When the same target is called again. Each retry uses a new connection and resolves the host name
 * again.
 *
 * - `immediate`: right away, before any other candidate, because the connection failed and not the
 *   target.
 * - `backoff`: after the other candidates and a random backoff.
 * - `retry_after`: after the other candidates and the wait that the provider requested, if it is
 *   short.
 */
export type RetryMode = "immediate" | "backoff" | "retry_after";

interface FailurePointRule {
  /** Description for the docs. */
  readonly description: string;
  /**
   * Whether another candidate may be called, if `ERRORS` and the route's `fallback_on` allow it.
   */
  readonly allowsFailover: boolean;
  /** Error kinds after which the same target may be called again. */
  readonly retries: { readonly [K in ErrorKind]?: RetryMode };
  /** Whether the retry does not count toward the target's retry limit. */
  readonly isFree: boolean;
  /**
   * How the failed call is billed. `void`: not billed. `estimated`: its whole input and the
   * received part of the response. `partial`: the output that was generated.
   */
  readonly ledgerResult: "void" | "estimated" | "partial";
}

/**
 * How far a call had progressed when it failed, from nothing sent to content received by the
 * client.
 */
export const FAILURE_POINTS = {
  unsent: {
    description: "nothing was sent: DNS, connection, or TLS failed",
    allowsFailover: true,
    retries: { upstream: "backoff", timeout: "backoff" },
    isFree: false,
    ledgerResult: "void",
  },
  send_interrupted: {
    description: "the connection was closed before the whole request was sent",
    allowsFailover: true,
    retries: { upstream: "immediate" },
    isFree: true,
    ledgerResult: "void",
  },
  no_response: {
    description: "the request was sent, and no response was received",
    allowsFailover: true,
    retries: { upstream: "immediate" },
    isFree: false,
    ledgerResult: "estimated",
  },
  rejected: {
    description: "the provider rejected the request",
    allowsFailover: true,
    retries: {
      upstream: "backoff",
      overloaded: "backoff",
      timeout: "backoff",
      rate_limited: "retry_after",
    },
    isFree: false,
    ledgerResult: "void",
  },
  response_started: {
    description: "the response failed before its first token",
    allowsFailover: true,
    retries: { upstream: "backoff", overloaded: "backoff" },
    isFree: false,
    ledgerResult: "estimated",
  },
  content_sent: {
    description: "content was already sent to the client",
    allowsFailover: false,
    retries: {},
    isFree: false,
    ledgerResult: "partial",
  },
} as const satisfies Record<string, FailurePointRule>;

/** How far a call had progressed when it failed. */
export type FailurePoint = keyof typeof FAILURE_POINTS;

/** Returns how the same target may be called again. Undefined if it must not be called again. */
export const retryModeAfter = (stage: FailurePoint, kind: ErrorKind): RetryMode | undefined =>
  (FAILURE_POINTS[stage] as FailurePointRule).retries[kind];
