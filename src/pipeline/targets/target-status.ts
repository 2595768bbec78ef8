// The words in which a target says what it knows.
import type { ErrorKind } from "../../model/error.ts";

/** What a kind of failure puts in cooldown, as ERRORS declares it. */
export type CooldownScope = "target" | "credential" | "credential+model";

/**
 * credential_rejected: its credential was rejected. retry_after: its provider sent `retry-after`. open, half_open: its circuit breaker. recovering: it
 * works again, and gets little more than it had before it failed.
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
  /** No request is sent until then, not even where there is no other candidate. */
  readonly rejectsRequests: boolean;
  /** Keys whose requests alone see it. Absent: the requests of all keys. */
  readonly keys?: readonly string[];
}

/** States in which a target is called after the others. In the others it is called in its place. */
export const COOLDOWN_STATES: ReadonlySet<TargetState> = new Set([
  "credential_rejected",
  "retry_after",
  "open",
]);

/** How likely a target in cooldown is to succeed, beside others: the one with more is called first. */
export const scoreOf = (state: TargetState | undefined, score: number): number =>
  (state === "credential_rejected" || state === "retry_after" ? 0 : 1) + score;

export interface TargetName {
  readonly provider: string;
  readonly credential: string;
  readonly model: string;
  /** Its endpoint's address; "" for a native endpoint without one. */
  readonly base: string;
}

/**
 * How a call came to be made. probe: an open breaker lets it through, to find out whether the target works. spare: its target is in
 * cooldown, and no other was left.
 */
export type CallReason = "plain" | "probe" | "spare";

/** Of a call that failed. */
export interface FailureContext {
  readonly reason: CallReason;
  /** When it began. */
  readonly startedAt: number;
  /** The key that it was made for. */
  readonly client: string;
  /** The request's id. */
  readonly requestId: string;
  /** The client sent the request before. */
  readonly isClientRetry: boolean;
  /** No connection: nothing was sent. */
  readonly isUnsent: boolean;
  /** request: the failure concerns this request alone. account: the provider said that the account's limit is used up. */
  readonly limitScope: "request" | "account" | undefined;
}

/** Of several states of a target, the one with the lowest number decides. */
const RANKS: Readonly<Record<TargetState, number>> = {
  credential_rejected: 0,
  retry_after: 0,
  open: 1,
  half_open: 2,
  recovering: 3,
};

/** The cooldown that decides: one that refuses requests before one that orders candidates, then by its state, then the longer one. */
export function stronger(
  a: TargetStatus | undefined,
  b: TargetStatus | undefined,
): TargetStatus | undefined {
  if (!a || !b) return a ?? b;
  if (a.rejectsRequests !== b.rejectsRequests) return a.rejectsRequests ? a : b;
  return (RANKS[b.state] - RANKS[a.state] || a.until - b.until) < 0 ? b : a;
}

/** By so much the share of calls that succeed must be larger for a candidate in cooldown to be called before one that works again. */
export const SCORE_MARGIN = 0.2;
