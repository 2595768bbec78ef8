// A cooldown that a provider asked for (`retry-after`), or that follows a rejected credential.
import type { ErrorKind } from "../../model/error.ts";

/** A longer `retry-after` is cut to this. */
const MAX_COOLDOWN_MS = 300_000;
/** `retry-after` counts whole seconds: its last one may be over already. */
const RETRY_AFTER_ROUNDING_MS = 1_000;
/** A cooldown that grows by less is reported once. */
const MIN_REPORTED_GROWTH_MS = 1_000;

export class ProviderCooldown {
  reason: ErrorKind = "rate_limited";
  /** The monotonic clock, in milliseconds. */
  until = 0;
  /** It has begun, and no call has succeeded since. */
  isActive = false;
  #rejectsUntil = 0;
  #startedAt = 0;
  #endedBy = 0;

  /**
   * Returns whether it begins, or grows noticeably. `ms`: what upstream asked for; `started`: when its call began; `refuses`: the
   * provider said that the account's limit is used up, so no request succeeds until then.
   */
  start(
    now: number,
    reason: ErrorKind,
    of: { ms: number; refuses: boolean; started: number },
  ): boolean {
    // A call that began later has ended it: this failure is older.
    if (of.started < this.#endedBy) return false;
    const until = now + Math.min(of.ms, MAX_COOLDOWN_MS);
    if (of.refuses)
      this.#rejectsUntil = Math.max(this.#rejectsUntil, until - RETRY_AFTER_ROUNDING_MS);
    if (until <= this.until) return false;
    const wasCoolingDown = this.isCoolingDown(now);
    const longer = until - this.until;
    if (!wasCoolingDown) this.#startedAt = now;
    this.isActive = true;
    this.until = until;
    this.reason = reason;
    return !wasCoolingDown || longer > MIN_REPORTED_GROWTH_MS;
  }

  isCoolingDown(now: number): boolean {
    return this.isActive && now < this.until;
  }

  /** No request is sent: all would be refused. */
  rejectsRequests(now: number): boolean {
    return this.isActive && now < this.#rejectsUntil;
  }

  /** A call that began after it has succeeded: it is over. */
  end(started: number): boolean {
    if (!this.isActive || started < this.#startedAt) return false;
    this.isActive = false;
    this.until = this.#rejectsUntil = 0;
    this.#endedBy = started;
    return true;
  }
}
