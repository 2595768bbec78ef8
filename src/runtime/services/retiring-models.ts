// Warns the operator about a model in use that its provider will retire. Logs one line per day for
// each such model that is requested.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Log } from "../../lib/log/log.ts";

const DAY_MS = 86_400_000;
/** How long before the retirement date warnings begin, in milliseconds. */
const WARN_BEFORE_MS = 90 * DAY_MS;

export class RetiringModels {
  readonly #log: Pick<Log, "warn">;
  readonly #now: () => number;
  readonly #warnedAt = new Map<string, number>();

  constructor(log: Pick<Log, "warn">, now: () => number = wallClock) {
    this.#log = log;
    this.#now = now;
  }

  /** Records a call to a model. `retires`: an ISO date. */
  recordUse(model: string, retires: string): void {
    const now = this.#now();
    const remainingMs = Date.parse(retires) - now;
    // An invalid date causes no warning.
    if (!(remainingMs <= WARN_BEFORE_MS) || now - (this.#warnedAt.get(model) ?? -Infinity) < DAY_MS)
      return;
    this.#warnedAt.set(model, now);
    const days = Math.ceil(remainingMs / DAY_MS);
    this.#log.warn(
      { model, retires, days },
      days > 0 ? "model in use retires soon" : "model in use past its retirement date",
    );
  }
}
