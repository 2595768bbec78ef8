// The laws of a store: any store that keeps them can keep the ledger.
import type { Check } from "./check.ts";
import { first, type Law, type StoreUnderTest } from "./store/bench.ts";
import { entryLaws } from "./store/entries.ts";
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
  const checks: Check[] = [];
  const law: Law = (name, run) =>
    checks.push({
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
    });
  for (const laws of [entryLaws, limitLaws, recoveryLaws, recordLaws, severalLaws]) laws(law);
  return checks;
}
