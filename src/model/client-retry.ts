// Whether, and when, a client should send the same request again. One value decides it: `retry-after`, `retry-after-ms`, `x-should-retry`, the
// sentence at the end of the message, and what a protocol says of it in its body are all made from it, so they cannot disagree.
import type { ErrorKind, Fault } from "./error.ts";

/**
 * yes: the same request may succeed later. if_retry_after: only where the fault says when. no: it would fail the same way, or only an operator can
 * mend it.
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

/** Where it is not known when. */
const DEFAULT_RETRY_MS = 1_000;
/** Longer than this a client is not told to retry by itself: one SDK would sleep for all of it, another asks at once and again. */
const MAX_CLIENT_WAIT_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

/** When the same request may succeed, in whole milliseconds from now; undefined: it would fail again. */
export function retryAfterMsFor({ kind, retryAfterMs: told }: Fault): number | undefined {
  const when = CLIENT_RETRIES[kind];
  const known = typeof told === "number" && told >= 0;
  if (when === "no" || (when === "if_retry_after" && !known)) return undefined;
  return Math.min(DAY_MS, Math.max(1, Math.ceil(known ? told : DEFAULT_RETRY_MS)));
}

const seconds = (ms: number): number => Math.ceil(ms / 1_000);

/** The headers of a refusal. `ms`: of `retryAfterOf`. */
export const retryHeaders = (ms: number | undefined): Record<string, string> =>
  ms === undefined
    ? { "x-should-retry": "false" }
    : {
        "retry-after": String(seconds(ms)),
        "retry-after-ms": String(ms),
        "x-should-retry": String(ms <= MAX_CLIENT_WAIT_MS),
      };

/** A fault as a client is told it: its message ends with when to retry, and `retryAfterMs` is there only if it should. */
export function withRetryHint(fault: Fault): Fault {
  const { retryAfterMs: _, ...rest } = fault;
  const ms = retryAfterMsFor(fault);
  if (ms === undefined) return rest;
  return { ...rest, retryAfterMs: ms, message: appendRetryHint(fault.message, ms) };
}

/** Messages say nothing of it themselves. */
export const appendRetryHint = (message: string, ms: number): string =>
  `${/[.!?…]$/.test(message) ? message : `${message}.`} Retry after ${seconds(ms)} s.`;
