import { ERRORS, fail, type ErrorKind } from "tollgate/plugin";

export interface SimulatedFailure {
  kind: ErrorKind;
  /** Number of words to send before the failure. */
  afterWords: number;
  retryAfterMs: number | undefined;
}

const KINDS = Object.keys(ERRORS) as ErrorKind[];

/**
 * Parses a failure such as "rate_limited", "overloaded after 5", or "rate_limited retry 30": the
 * error kind, the words to send first, and the retry delay in seconds.
 */
export function parseFailure(text: string): SimulatedFailure {
  const kind = KINDS.find((k) => new RegExp(`\\b${k}\\b`).test(text));
  if (!kind)
    return fail(
      "invalid",
      `Missing failure for demo/fail. Send one of ${KINDS.join(", ")}. "overloaded after 5" sends five words first, and "rate_limited retry 30" sets retry-after to 30 seconds.`,
      { code: "demo_fail_how" },
    );
  const after = /\bafter (\d{1,4})\b/.exec(text)?.[1];
  const retry = /\bretry (\d{1,5})\b/.exec(text)?.[1];
  return {
    kind,
    afterWords: Math.min(Number(after ?? 0), 1_000),
    retryAfterMs: retry === undefined ? undefined : Number(retry) * 1000,
  };
}

export const throwSimulatedFailure = ({ kind, retryAfterMs }: SimulatedFailure): never =>
  fail(kind, `demo/fail failed as requested: ${kind}.`, { code: "demo_failed", retryAfterMs });
