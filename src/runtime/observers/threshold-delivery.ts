// Notifies the observers of the thresholds that were reached, according to the store's results. A
// store with an outbox is notified when all observers have received the thresholds. If the process
// is killed before that, the thresholds are delivered again at the next start.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Log } from "../../lib/log/log.ts";
import type { ThresholdReached } from "../../plugin/store/limit.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { ObserverSink } from "./observer-hub.ts";

export class ThresholdDelivery {
  readonly #outbox: Store["thresholds"];
  readonly #sink: Pick<ObserverSink, "deliverEvent">;
  readonly #log: Log;

  constructor(
    store: Pick<Store, "thresholds">,
    sink: Pick<ObserverSink, "deliverEvent">,
    log: Log,
  ) {
    this.#outbox = store.thresholds;
    this.#sink = sink;
    this.#log = log;
  }

  /** Starts the delivery of thresholds and returns immediately. */
  deliver(thresholds: readonly ThresholdReached[]): void {
    this.#deliverAndAck(thresholds).catch((error: unknown) => this.#logFailure(error));
  }

  /**
   * Delivers the thresholds that the previous process did not deliver. Called once, when the
   * observers exist and no client is connected yet.
   */
  async deliverUndelivered(): Promise<void> {
    try {
      const undelivered = await this.#outbox?.listUndelivered();
      if (undelivered && undelivered.length > 0) await this.#deliverAndAck(undelivered);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  async #deliverAndAck(thresholds: readonly ThresholdReached[]): Promise<void> {
    const delivered = await Promise.all(
      thresholds.map((each) =>
        this.#sink.deliverEvent({ type: "budget_threshold_reached", at: wallClock(), ...each }),
      ),
    );
    if (!this.#outbox || delivered.includes(false)) return;
    await this.#outbox.markDelivered(thresholds);
  }

  #logFailure(error: unknown): void {
    this.#log.warn(
      { err: error },
      "threshold delivery not recorded in store, will notify again after restart",
    );
  }
}
