// A time in which something is left alone, because its provider said so or refused its credential.
import type { ErrorKind } from "../../model/error.ts";

/** No provider is believed that asks for more. */
const MOST_MS = 300_000;
/** Where nothing was said: so much, and twice as much each time that it fails again. */
const UNTOLD_MS = 1_000;
const UNTOLD_MOST_MS = 60_000;
/** A rest that grows by less is told of once. */
const NOTICED_MS = 1_000;
/** So that what was sent away together does not come back together. */
const JITTER = 0.1;

export class Pause {
  why: ErrorKind = "rate_limited";
  /** The monotonic clock, in milliseconds. */
  until = 0;
  /** It has begun, and nothing has answered since. */
  active = false;
  /** Nothing was said of how long it lasts: that is only supposed here. */
  supposed = false;
  #since = 0;
  #ended = 0;
  #untold = 0;

  /** Says whether it has begun to rest, or rests noticeably longer. `told`: what upstream asked for; `started`: when its call began. */
  begin(
    now: number,
    why: ErrorKind,
    of: { told: number | undefined; usual?: number; started: number },
    chance: () => number,
  ): boolean {
    // Something that was asked later has ended it: this is older news that came later.
    if (of.started < this.#ended) return false;
    const rested = this.rests(now);
    const said = of.told ?? of.usual;
    // Calls that were under way together fail together, and are one failure.
    if (said === undefined && rested) return false;
    const ms = said ?? Math.min(UNTOLD_MOST_MS, UNTOLD_MS * 2 ** this.#untold++);
    const until = now + Math.min(ms, MOST_MS) * (1 + JITTER * chance());
    if (until <= this.until) return false;
    const longer = until - this.until;
    if (!rested) this.#since = now;
    this.active = true;
    this.until = until;
    this.supposed = said === undefined;
    this.why = why;
    return !rested || longer > NOTICED_MS;
  }

  rests(now: number): boolean {
    return this.active && now < this.until;
  }

  /** Something answered that was asked after this began: it is over. */
  end(started: number): boolean {
    if (!this.active || started < this.#since) return false;
    this.active = false;
    this.until = 0;
    this.#untold = 0;
    this.#ended = started;
    return true;
  }
}
