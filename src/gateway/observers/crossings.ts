// Budgets that have been crossed, as the store's verdicts say: every batch of every process passes here on its way to the store,
// so each crossing is told once.
import type { Store } from "../../plugin/store.ts";
import type { Observing } from "./audience.ts";

export const hearingCrossings = (
  store: Pick<Store, "apply" | "lease">,
  observing: Pick<Observing, "told">,
): Pick<Store, "apply" | "lease"> => ({
  lease: store.lease,
  async apply(batch) {
    const verdicts = await store.apply(batch);
    for (const verdict of verdicts)
      if (verdict.ok && verdict.crossed)
        for (const crossing of verdict.crossed)
          observing.told({ type: "budget_crossed", at: Date.now(), ...crossing });
    return verdicts;
  },
});
