// Warns the operator of a model in use that its provider will retire: one line a day for each, while it is asked for.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Log } from "../../lib/log/log.ts";

const DAY_MS = 86_400_000;
/** A date further away than this is not worth a warning yet. */
const WARN_BEFORE_MS = 90 * DAY_MS;

export class RetiringModels {
  readonly #log: Pick<Log, "warn">;
  readonly #now: () => number;
  readonly #warnedAt = new Map<string, number>();

  constructor(log: Pick<Log, "warn">, now: () => number = wallClock) {
    this.#log = log;
    this.#now = now;
  }

  /** A call goes to this model; `retires`: an ISO date. */
  recordUse(model: string, retires: string): void {
    const now = this.#now();
    const remainingMs = Date.parse(retires) - now;
    // A date that cannot be read is no reason for a warning.
    if (!(remainingMs <= WARN_BEFORE_MS) || now - (this.#warnedAt.get(model) ?? -Infinity) < DAY_MS)
      return;
    this.#warnedAt.set(model, now);
    const days = Math.ceil(remainingMs / DAY_MS);
    this.#log.warn(
      { model, retires, days },
      days > 0 ? "a model in use retires soon" : "a model in use should be gone by now",
    );
  }
}
