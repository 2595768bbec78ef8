// What each commit tells: budgets that have been crossed, as the store's verdicts say, the bills that are durable now, and how long
// it took. Every batch of every process passes here on its way to the store, so each is told once.
import type { Store } from "../../plugin/store/store.ts";
import type { DurationRecorder } from "../services/duration-histogram.ts";
import type { ObserverSink } from "./observer-hub.ts";
import type { ThresholdDelivery } from "./threshold-delivery.ts";

export const withCommitReports = (
  store: Pick<Store, "apply" | "lease">,
  sink: Pick<ObserverSink, "reportCommit">,
  commits: DurationRecorder,
  thresholds: Pick<ThresholdDelivery, "deliver">,
): Pick<Store, "apply" | "lease"> => ({
  lease: store.lease,
  async apply(batch) {
    const began = performance.now();
    const verdicts = await store.apply(batch);
    commits.record(performance.now() - began);
    sink.reportCommit(batch, verdicts);
    for (const verdict of verdicts)
      if (verdict.ok && verdict.thresholds) thresholds.deliver(verdict.thresholds);
    return verdicts;
  },
});
