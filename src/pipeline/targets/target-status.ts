// Types that describe the state of a target.
import type { ErrorKind } from "../../model/error.ts";

/** The scope of a cooldown, as `ERRORS` declares it for each error kind. */
export type CooldownScope = "target" | "credential" | "credential+model";

/**
 * State of a target. `credential_rejected`: its credential was rejected. `retry_after`: its
 * provider sent `retry-after`. `open`, `half_open`: its circuit breaker. `recovering`: the target
 * works again and receives slightly more requests than before it failed.
 */
export type TargetState =
  | "credential_rejected"
  | "retry_after"
  | "open"
  | "half_open"
  | "recovering";

export interface TargetStatus {
  readonly state: TargetState;
  readonly reason: ErrorKind;
  readonly until: number;
  /** Whether no request is sent until `until`, even if there is no other candidate. */
  readonly rejectsRequests: boolean;
  /** Keys whose requests are affected. If unset, all keys are affected. */
  readonly keys?: readonly string[];
}

/**
 * States in which a target is called after the others. In other states, the target keeps its
 * position.
 */
export const COOLDOWN_STATES: ReadonlySet<TargetState> = new Set([
  "credential_rejected",
  "retry_after",
  "open",
]);

/**
 * Returns the score of a target: its probability of success. Among targets in cooldown, the target
 * with the highest score is called first.
 */
export const scoreOf = (state: TargetState | undefined, score: number): number =>
  (state === "credential_rejected" || state === "retry_after" ? 0 : 1) + score;

export interface TargetName {
  readonly provider: string;
  readonly credential: string;
  readonly model: string;
  /** Base URL of its endpoint. Empty for a native endpoint without one. */
  readonly base: string;
}

/**
 * Reason for a call. `probe`: an open breaker allows the call, to test the target. `spare`: its
 * target is in cooldown, and no other candidate was left.
 */
export type CallReason = "plain" | "probe" | "spare";

/** Details of a failed call. */
export interface FailureContext {
  readonly reason: CallReason;
  /** Start time of the call. */
  readonly startedAt: number;
  /** The key that the call was made for. */
  readonly client: string;
  /** Request ID. */
  readonly requestId: string;
  /** Whether the client sent the request before. */
  readonly isClientRetry: boolean;
  /** Whether no connection was made, so that nothing was sent. */
  readonly isUnsent: boolean;
  /**
   * Scope of a 429. `request`: the failure concerns this request alone. `account`: the provider
   * reported that the account's limit is used up.
   */
  readonly limitScope: "request" | "account" | undefined;
}

/** Rank of each state. If a target has several states, the lowest number is used. */
const RANKS: Readonly<Record<TargetState, number>> = {
  credential_rejected: 0,
  retry_after: 0,
  open: 1,
  half_open: 2,
  recovering: 3,
};

/**
 * Returns the stronger of two cooldowns. A cooldown that rejects requests is stronger than a
 * cooldown that only orders candidates. Otherwise the state's rank decides, then the longer
 * duration.
 */
export function stronger(
  a: TargetStatus | undefined,
  b: TargetStatus | undefined,
): TargetStatus | undefined {
  if (!a || !b) return a ?? b;
  if (a.rejectsRequests !== b.rejectsRequests) return a.rejectsRequests ? a : b;
  return (RANKS[b.state] - RANKS[a.state] || a.until - b.until) < 0 ? b : a;
}

/**
 * Minimum difference in score for a candidate in cooldown to be called before a recovered
 * candidate.
 */
export const SCORE_MARGIN = 0.2;
