// One finding of `tollgate doctor`.
import { wallClock } from "../../lib/time/wall-clock.ts";

export interface DoctorFinding {
  /** Stable identifier for programs: "disk/fsync". */
  readonly id: string;
  readonly level: "ok" | "note" | "warning" | "error";
  /** The finding in one sentence. */
  readonly message: string;
  /** Instruction for fixing the problem. It is always set for warnings and errors. */
  readonly action?: string;
}

export const okFinding = (id: string, found: string): DoctorFinding => ({
  id,
  level: "ok",
  message: found,
});
export const noteFinding = (id: string, found: string, todo?: string): DoctorFinding => ({
  id,
  level: "note",
  message: found,
  ...(todo !== undefined && { action: todo }),
});
export const warningFinding = (id: string, found: string, todo: string): DoctorFinding => ({
  id,
  level: "warning",
  message: found,
  action: todo,
});
export const errorFinding = (id: string, found: string, todo: string): DoctorFinding => ({
  id,
  level: "error",
  message: found,
  action: todo,
});

// Thresholds from which `tollgate doctor` reports a warning or an error.

interface Threshold {
  readonly warning: number;
  readonly error: number;
}

/** Oldest supported major version of Node.js. */
export const MIN_NODE = 24;
/** Free disk space in bytes. A lower value is worse. */
export const FREE_BYTES: Threshold = { warning: 1 << 30, error: 64 << 20 };
/** Time in milliseconds until a write is durable. */
export const FSYNC_MS: Threshold = { warning: 25, error: 250 };
/** Difference in milliseconds between the clocks of this machine and another machine. */
export const SKEW_MS: Threshold = { warning: 5_000, error: 300_000 };
/** Maximum expected time of a DNS lookup, in milliseconds. */
export const LOOKUP_MS = 500;
/**
 * Remaining validity of a certificate, in days. ACME clients renew 30 days before the expiry, so a
 * certificate with 14 days left was not renewed automatically.
 */
export const CERTIFICATE_DAYS = 14;
/** Remaining validity of a data policy, in days. Renewing a contract takes people time. */
export const POLICY_DAYS = 30;

const DAY_MS = 86_400_000;

/** `unreadable` is a date that cannot be parsed, so it could be close. */
type ExpiryState = "over" | "soon" | "later" | "unreadable";

export function expiryState(at: string | undefined, withinDays: number): ExpiryState {
  const left = daysLeft(at);
  if (Number.isNaN(left)) return "unreadable";
  if (left <= 0) return "over";
  return left < withinDays ? "soon" : "later";
}

export const daysLeft = (at: string | undefined): number =>
  (Date.parse(at ?? "") - wallClock()) / DAY_MS;
