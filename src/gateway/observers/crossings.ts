// Crossings of limits, from the store's verdicts to the observers. A store that keeps them is told when all observers have heard, so
// that what a kill comes between is told by the next start.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LimitCrossing } from "../../plugin/limit.ts";
import type { Store } from "../../plugin/store.ts";
import type { Observing } from "./audience.ts";

export class Crossings {
  readonly #kept: Store["crossings"];
  readonly #observing: Pick<Observing, "heard">;
  readonly #log: Log;

  constructor(store: Pick<Store, "crossings">, observing: Pick<Observing, "heard">, log: Log) {
    this.#kept = store.crossings;
    this.#observing = observing;
    this.#log = log;
  }

  /** Nothing waits for it. */
  tell(crossings: readonly LimitCrossing[]): void {
    this.#tell(crossings).catch((error: unknown) => this.#failed(error));
  }

  /** What the process before did not live to tell. Once, when there are observers and no client yet. */
  async left(): Promise<void> {
    try {
      const untold = await this.#kept?.untold();
      if (untold && untold.length > 0) await this.#tell(untold);
    } catch (error) {
      this.#failed(error);
    }
  }

  async #tell(crossings: readonly LimitCrossing[]): Promise<void> {
    const heard = await Promise.all(
      crossings.map((each) =>
        this.#observing.heard({ type: "budget_crossed", at: wallClock(), ...each }),
      ),
    );
    if (!this.#kept || heard.includes(false)) return;
    await this.#kept.told(crossings);
  }

  #failed(error: unknown): void {
    this.#log.warn(
      { err: error },
      "the store does not know yet that a crossed budget was told; it is told again after the next start",
    );
  }
}
