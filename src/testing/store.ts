// The laws of a store: any store that keeps them can keep the ledger.
import type { Check } from "./check.ts";
import { first, type StoreUnderTest } from "./store/bench.ts";
import { entryLaws } from "./store/entries.ts";
import { keepingLaws } from "./store/keeping.ts";
import { limitLaws } from "./store/limits.ts";
import { recordLaws } from "./store/records.ts";
import { severalLaws } from "./store/several.ts";
import { recoveryLaws } from "./store/recovery.ts";

export { NOON, reserve, settle, type StoreUnderTest } from "./store/bench.ts";

/**
 * The laws of a store, as checks for a runner. `make` is called once for each check, and gives a store that is new and
 * not yet open; the check opens it, and ends it whatever happens. What `make` or the store throws fails that check
 * alone.
 */
export function storeConformance(make: () => Promise<StoreUnderTest>): readonly Check[] {
  const laws = [entryLaws, limitLaws, recoveryLaws, recordLaws, severalLaws, keepingLaws].flat();
  return laws.map(([name, run]) => ({
    name,
    async run() {
      const { store, crash, end, ...others } = await make();
      try {
        await store.open(first);
        await run(store, crash, others);
      } finally {
        await end();
      }
    },
  }));
}
