// The laws of a store: any store that keeps them can keep the ledger.
import type { Check } from "./check.ts";
import { FIRST_OWNER, type StoreUnderTest } from "./store/fixtures.ts";
import { accountLaws } from "./store/accounts.ts";
import { auditLaws } from "./store/audit.ts";
import { entryLaws } from "./store/ledger-entries.ts";
import { maintenanceLaws } from "./store/maintenance.ts";
import { limitLaws } from "./store/limits.ts";
import { transferLaws } from "./store/transfer.ts";
import { recordLaws } from "./store/records.ts";
import { textLaws } from "./store/arbitrary-text.ts";
import { fleetChangeLaws } from "./store/fleet-changes.ts";
import { fleetSettlementLaws } from "./store/fleet-settlement.ts";
import { fleetLimitLaws } from "./store/fleet-limits.ts";
import { openInstances, type FleetUnderTest } from "./store/fleet.ts";
import { instanceLaws } from "./store/instances.ts";
import { recoveryLaws } from "./store/recovery.ts";

export { NOON, reserveCommand, settleCommand, type StoreUnderTest } from "./store/fixtures.ts";
export type { FleetUnderTest } from "./store/fleet.ts";

/**
 * The laws of a store, as checks for a runner. `make` is called once for each check, and gives a store that is new and
 * not yet open; the check opens it, and ends it whatever happens. What `make` or the store throws fails that check
 * alone.
 */
export function storeChecks(make: () => Promise<StoreUnderTest>): readonly Check[] {
  const laws = [
    entryLaws,
    limitLaws,
    recoveryLaws,
    recordLaws,
    textLaws,
    accountLaws,
    auditLaws,
    instanceLaws,
    maintenanceLaws,
    transferLaws,
  ].flat();
  return laws.map(([name, run]) => ({
    name,
    async run() {
      const { store, crash, dispose, ...others } = await make();
      try {
        await store.open(FIRST_OWNER);
        await run(store, crash, others);
      } finally {
        await dispose();
      }
    },
  }));
}

/**
 * The laws of a fleet: what several instances of one store promise together. `make` is called once for each check and gives instances on a
 * new ledger; of a store that belongs to one process one instance, which keeps the same laws alone.
 */
export function fleetChecks(make: () => Promise<FleetUnderTest>): readonly Check[] {
  return [...fleetLimitLaws, ...fleetSettlementLaws, ...fleetChangeLaws].map(([name, run]) => ({
    name,
    async run() {
      const { stores, dispose, ...fleet } = await make();
      try {
        const [one, ...others] = await openInstances(stores);
        if (!one) throw new Error("A fleet has at least one instance.");
        await run([one, ...others], fleet);
      } finally {
        await dispose();
      }
    },
  }));
}
