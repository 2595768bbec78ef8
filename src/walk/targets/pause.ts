// A cooldown that a provider asked for (`retry-after`), or that follows a rejected credential.
import type { ErrorKind } from "../../model/error.ts";

/** A longer `retry-after` is cut to this. */
const MOST_MS = 300_000;
/** `retry-after` counts whole seconds: its last one may be over already. */
const ROUNDED_MS = 1_000;
/** A cooldown that grows by less is reported once. */
const NOTICED_MS = 1_000;

export class Pause {
  why: ErrorKind = "rate_limited";
  /** The monotonic clock, in milliseconds. */
  until = 0;
  /** It has begun, and no call has succeeded since. */
  active = false;
  #refuses = 0;
  #since = 0;
  #ended = 0;

  /**
   * Returns whether it begins, or grows noticeably. `ms`: what upstream asked for; `started`: when its call began; `refuses`: the
   * provider said that the account's limit is used up, so no request succeeds until then.
   */
  begin(
    now: number,
    why: ErrorKind,
    of: { ms: number; refuses: boolean; started: number },
  ): boolean {
    // A call that began later has ended it: this failure is older.
    if (of.started < this.#ended) return false;
    const until = now + Math.min(of.ms, MOST_MS);
    if (of.refuses) this.#refuses = Math.max(this.#refuses, until - ROUNDED_MS);
    if (until <= this.until) return false;
    const lasted = this.rests(now);
    const longer = until - this.until;
    if (!lasted) this.#since = now;
    this.active = true;
    this.until = until;
    this.why = why;
    return !lasted || longer > NOTICED_MS;
  }

  rests(now: number): boolean {
    return this.active && now < this.until;
  }

  /** No request is sent: all would be refused. */
  refuses(now: number): boolean {
    return this.active && now < this.#refuses;
  }

  /** A call that began after it has succeeded: it is over. */
  end(started: number): boolean {
    if (!this.active || started < this.#since) return false;
    this.active = false;
    this.until = this.#refuses = 0;
    this.#ended = started;
    return true;
  }
}
