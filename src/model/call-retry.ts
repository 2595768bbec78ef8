// What may be tried again after a failure: data, beside ERRORS. There the kind decides whether another candidate may be asked; here
// it is how far the call had come that decides, together with the kind, whether the same target may be asked once more, and what
// the call's row in the ledger is.
import type { ErrorKind } from "./error.ts";

/**
 * immediate: at once, before any other candidate: the connection was at fault, not the target. backoff: after the others, and after a pause
 * that chance spreads. retry_after: after the others, and after the pause that the provider asked for, where that is short. All of them
 * on a new connection, for which the name is looked up again.
 */
export type RetryMode = "immediate" | "backoff" | "retry_after";

interface FailurePointRule {
  /** What it means, in the words of the docs. */
  readonly description: string;
  /** Whether another candidate may be asked, where ERRORS and the route's `fallback_on` allow it. */
  readonly allowsFailover: boolean;
  /** After which kinds the same target may be asked once more. */
  readonly retries: { readonly [K in ErrorKind]?: RetryMode };
  /** Whether that costs nothing of the target's budget of retries. */
  readonly isFree: boolean;
  /**
   * void: nothing is billed. estimated: its input is billed as if it had been read, with what was seen of an answer. partial: what was
   * made is billed.
   */
  readonly ledgerResult: "void" | "estimated" | "partial";
}

/** How far a call had come when it failed, from nothing sent to something that its client has seen. */
export const FAILURE_POINTS = {
  unsent: {
    description: "nothing was sent: no address, no connection, no TLS",
    allowsFailover: true,
    retries: { upstream: "backoff", timeout: "backoff" },
    isFree: false,
    ledgerResult: "void",
  },
  send_interrupted: {
    description: "the connection was closed before all of the request was sent",
    allowsFailover: true,
    retries: { upstream: "immediate" },
    isFree: true,
    ledgerResult: "void",
  },
  no_response: {
    description: "all was sent, and nothing came back",
    allowsFailover: true,
    retries: { upstream: "immediate" },
    isFree: false,
    ledgerResult: "estimated",
  },
  rejected: {
    description: "the provider refused it",
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
    description: "an answer began and failed before its first content",
    allowsFailover: true,
    retries: { upstream: "backoff", overloaded: "backoff" },
    isFree: false,
    ledgerResult: "estimated",
  },
  content_sent: {
    description: "content has left for the client",
    allowsFailover: false,
    retries: {},
    isFree: false,
    ledgerResult: "partial",
  },
} as const satisfies Record<string, FailurePointRule>;

/** How far a call had come. */
export type FailurePoint = keyof typeof FAILURE_POINTS;

/** How the same target may be tried once more; undefined: it may not. */
export const retryModeAfter = (stage: FailurePoint, kind: ErrorKind): RetryMode | undefined =>
  (FAILURE_POINTS[stage] as FailurePointRule).retries[kind];
