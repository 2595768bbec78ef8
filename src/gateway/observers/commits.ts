// What each commit tells: budgets that have been crossed, as the store's verdicts say, the bills that are durable now, and how long
// it took. Every batch of every process passes here on its way to the store, so each is told once.
import type { Store } from "../../plugin/store.ts";
import type { Durations } from "../readings/durations.ts";
import type { Observing } from "./audience.ts";
import type { Crossings } from "./crossings.ts";

export const hearingCommits = (
  store: Pick<Store, "apply" | "lease">,
  observing: Pick<Observing, "landed">,
  commits: Durations,
  crossings: Pick<Crossings, "tell">,
): Pick<Store, "apply" | "lease"> => ({
  lease: store.lease,
  async apply(batch) {
    const began = performance.now();
    const verdicts = await store.apply(batch);
    commits.took(performance.now() - began);
    observing.landed(batch, verdicts);
    for (const verdict of verdicts)
      if (verdict.ok && verdict.crossed) crossings.tell(verdict.crossed);
    return verdicts;
  },
});
