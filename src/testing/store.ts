// The laws of a store: any store that keeps them can keep the ledger.
import type { Check } from "./check.ts";
import { first, type StoreUnderTest } from "./store/bench.ts";
import { accountLaws } from "./store/accounts.ts";
import { auditLaws } from "./store/audit.ts";
import { entryLaws } from "./store/entries.ts";
import { keepingLaws } from "./store/keeping.ts";
import { limitLaws } from "./store/limits.ts";
import { movingLaws } from "./store/moving.ts";
import { recordLaws } from "./store/records.ts";
import { textLaws } from "./store/texts.ts";
import { fleetChanges } from "./store/fleet-changes.ts";
import { fleetEnds } from "./store/fleet-ends.ts";
import { fleetLimits } from "./store/fleet-limits.ts";
import { opened, type FleetUnderTest } from "./store/fleet.ts";
import { severalLaws } from "./store/several.ts";
import { recoveryLaws } from "./store/recovery.ts";

export { NOON, reserve, settle, type StoreUnderTest } from "./store/bench.ts";
export type { FleetUnderTest } from "./store/fleet.ts";

/**
 * The laws of a store, as checks for a runner. `make` is called once for each check, and gives a store that is new and
 * not yet open; the check opens it, and ends it whatever happens. What `make` or the store throws fails that check
 * alone.
 */
export function storeConformance(make: () => Promise<StoreUnderTest>): readonly Check[] {
  const laws = [
    entryLaws,
    limitLaws,
    recoveryLaws,
    recordLaws,
    textLaws,
    accountLaws,
    auditLaws,
    severalLaws,
    keepingLaws,
    movingLaws,
  ].flat();
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

/**
 * The laws of a fleet: what several instances of one store promise together. `make` is called once for each check and gives instances on a
 * new ledger; of a store that belongs to one process one instance, which keeps the same laws alone.
 */
export function fleetConformance(make: () => Promise<FleetUnderTest>): readonly Check[] {
  return [...fleetLimits, ...fleetEnds, ...fleetChanges].map(([name, run]) => ({
    name,
    async run() {
      const { stores, end, ...fleet } = await make();
      try {
        const [one, ...others] = await opened(stores);
        if (!one) throw new Error("A fleet has at least one instance.");
        await run([one, ...others], fleet);
      } finally {
        await end();
      }
    },
  }));
}
