// A cooldown that a provider requested (`retry-after`), or that follows a rejected credential.
import type { ErrorKind } from "../../model/error.ts";

/** Maximum cooldown in milliseconds. A longer `retry-after` is cut to this. */
const MAX_COOLDOWN_MS = 300_000;
/**
 * `retry-after` counts whole seconds, so up to this many milliseconds of it may already have
 * passed.
 */
const RETRY_AFTER_ROUNDING_MS = 1_000;
/** Minimum extension of a cooldown, in milliseconds, that is reported again. */
const MIN_REPORTED_GROWTH_MS = 1_000;

export class ProviderCooldown {
  reason: ErrorKind = "rate_limited";
  /** End of the cooldown on the monotonic clock, in milliseconds. */
  until = 0;
  /** Whether a cooldown has begun and no call has succeeded since. */
  isActive = false;
  #rejectsUntil = 0;
  #startedAt = 0;
  #endedBy = 0;

  /**
   * Starts or extends the cooldown. Returns whether it began or grew noticeably. `ms`: the
   * requested duration. `started`: when the call started. `refuses`: the provider reported that the
   * account's limit is used up, so all requests fail until the end of the cooldown.
   */
  start(
    now: number,
    reason: ErrorKind,
    of: { ms: number; refuses: boolean; started: number },
  ): boolean {
    // A call that started later has already ended the cooldown, so this failure is outdated.
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

  /** Whether no request is sent, because all would be rejected. */
  rejectsRequests(now: number): boolean {
    return this.isActive && now < this.#rejectsUntil;
  }

  /** Ends the cooldown if the successful call started after it began. Returns whether it ended. */
  end(started: number): boolean {
    if (!this.isActive || started < this.#startedAt) return false;
    this.isActive = false;
    this.until = this.#rejectsUntil = 0;
    this.#endedBy = started;
    return true;
  }
}
