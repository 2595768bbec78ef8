// From where on `tollgate doctor` says something: everything that is a matter of degree, in one place.
import { wallClock } from "../../lib/time/wall-clock.ts";

interface Threshold {
  readonly warning: number;
  readonly error: number;
}

/** The oldest that is served with. */
export const MIN_NODE = 24;
/** Bytes; less is worse. */
export const FREE_BYTES: Threshold = { warning: 1 << 30, error: 64 << 20 };
/** Until a write is durable. */
export const FSYNC_MS: Threshold = { warning: 25, error: 250 };
/** Between this clock and those of others. */
export const SKEW_MS: Threshold = { warning: 5_000, error: 300_000 };
/** Until a name has its address. */
export const LOOKUP_MS = 500;
/** Authorities' robots renew a month before the end: with two weeks left none has. */
export const CERTIFICATE_DAYS = 14;
/** A contract wants people. */
export const POLICY_DAYS = 30;

const DAY_MS = 86_400_000;

/** `unreadable` is no date that could be far away. */
type ExpiryState = "over" | "soon" | "later" | "unreadable";

export function expiryState(at: string | undefined, withinDays: number): ExpiryState {
  const left = daysLeft(at);
  if (Number.isNaN(left)) return "unreadable";
  if (left <= 0) return "over";
  return left < withinDays ? "soon" : "later";
}

export const daysLeft = (at: string | undefined): number =>
  (Date.parse(at ?? "") - wallClock()) / DAY_MS;
