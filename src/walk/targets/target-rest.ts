// The words in which a target says what it knows.
import type { ErrorKind } from "../../model/error.ts";

/** What a kind of failure puts in cooldown, as ERRORS declares it. */
export type Resting = "target" | "credential" | "credential+model";

/**
 * refused: its credential was rejected. told: its provider sent `retry-after`. open, half_open: its circuit breaker. recovering: it
 * works again, and gets little more than it had before it failed.
 */
export type TargetState = "refused" | "told" | "open" | "half_open" | "recovering";

export interface TargetRest {
  readonly state: TargetState;
  readonly why: ErrorKind;
  readonly until: number;
  /** No request is sent until then, not even where there is no other candidate. */
  readonly refuses: boolean;
  /** Keys whose requests alone see it. Absent: the requests of all keys. */
  readonly keys?: readonly string[];
}

/** States in which a target is called after the others. In the others it is called in its place. */
export const AWAY: ReadonlySet<TargetState> = new Set(["refused", "told", "open"]);

/** How likely a target in cooldown is to succeed, beside others: the one with more is called first. */
export const promiseOf = (state: TargetState | undefined, score: number): number =>
  (state === "refused" || state === "told" ? 0 : 1) + score;

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
export type Pass = "plain" | "probe" | "spare";

/** Of a call that failed. */
export interface CallFacts {
  readonly pass: Pass;
  /** When it began. */
  readonly started: number;
  /** The key that it was made for. */
  readonly who: string;
  /** The request's id. */
  readonly request: string;
  /** The client sent the request before. */
  readonly repeated: boolean;
  /** No connection: nothing was sent. */
  readonly unsent: boolean;
  /** request: the failure concerns this request alone. account: the provider said that the account's limit is used up. */
  readonly scope: "request" | "account" | undefined;
}

/** Of several states of a target, the one with the lowest number decides. */
const RANKS: Readonly<Record<TargetState, number>> = {
  refused: 0,
  told: 0,
  open: 1,
  half_open: 2,
  recovering: 3,
};

/** The cooldown that decides: one that refuses requests before one that orders candidates, then by its state, then the longer one. */
export function stronger(
  a: TargetRest | undefined,
  b: TargetRest | undefined,
): TargetRest | undefined {
  if (!a || !b) return a ?? b;
  if (a.refuses !== b.refuses) return a.refuses ? a : b;
  return (RANKS[b.state] - RANKS[a.state] || a.until - b.until) < 0 ? b : a;
}

/** By so much the share of calls that succeed must be larger for a candidate in cooldown to be called before one that works again. */
export const FAR = 0.2;
