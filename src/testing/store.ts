// Checks for stores. A store that passes all checks can keep the ledger.
import type { Check } from "./check.ts";
import { FIRST_OWNER, type StoreUnderTest } from "./store/fixtures.ts";
import { accountLaws, auditLaws } from "./store/accounts-and-audit.ts";
import { entryLaws, recoveryLaws } from "./store/rows-and-recovery.ts";
import { maintenanceLaws, transferLaws } from "./store/maintenance.ts";
import { fleetJobLaws, jobLedgerLaws, jobRecordLaws } from "./store/jobs.ts";
import { limitLaws } from "./store/limits.ts";
import { recordLaws, textLaws } from "./store/records.ts";
import { fleetChangeLaws } from "./store/fleet-changes.ts";
import { fleetSettlementLaws } from "./store/fleet-settlement.ts";
import { fleetLimitLaws } from "./store/fleet-limits.ts";
import { openInstances, type FleetUnderTest } from "./store/fleet.ts";
import { instanceLaws } from "./store/instances.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Definition } from "../plugin/define.ts";
import type { Store } from "../plugin/store/store.ts";
import { withDefaults } from "./conformance/definition.ts";
import { createTestContext, type TestContext } from "./context.ts";

export { NOON, reserveCommand, settleCommand, type StoreUnderTest } from "./store/fixtures.ts";
export type { FleetUnderTest } from "./store/fleet.ts";

/**
 * Returns the checks of a store for a runner. `make` is called once for each check and returns a
 * new store that is not open. The check opens the store and always closes it. If `make` or the
 * store throws, only that check fails.
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
    jobLedgerLaws,
    jobRecordLaws,
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
 * Returns the checks of a fleet: the guarantees of several instances of one store. `make` is called
 * once for each check and returns instances on a new ledger. For a store that belongs to one
 * process it returns one instance, which must pass the same checks.
 */
export function fleetChecks(make: () => Promise<FleetUnderTest>): readonly Check[] {
  const laws = [fleetLimitLaws, fleetSettlementLaws, fleetChangeLaws, fleetJobLaws].flat();
  return laws.map(([name, run]) => ({
    name,
    async run() {
      const { stores, dispose, ...fleet } = await make();
      try {
        const [one, ...others] = await openInstances(stores);
        if (!one) throw new Error("A fleet must have at least one instance.");
        await run([one, ...others], fleet);
      } finally {
        await dispose();
      }
    },
  }));
}

/**
 * Creates the argument of the store checks, for a store that keeps all its data in
 * `ctx.stateDir()`. Each call uses a new folder. A store that was killed is created again from the
 * files in its folder.
 */
export const createStoreFactory =
  (
    definition: Definition,
    options: Readonly<Record<string, unknown>> = {},
  ): (() => Promise<StoreUnderTest>) =>
  async () => {
    const stateDir = mkdtempSync(join(tmpdir(), "tollgate-store-"));
    const lent: TestContext[] = [];
    const made = async (): Promise<Store> => {
      const one = createTestContext({ id: "store", stateDir });
      lent.push(one);
      const setup = definition.setup as (options: unknown, ctx: unknown) => Store | Promise<Store>;
      return setup(withDefaults(definition.options, options), one.ctx);
    };
    return {
      store: await made(),
      crash: made,
      async dispose() {
        for (const one of lent) await one.end();
        rmSync(stateDir, { recursive: true, force: true });
      },
    };
  };
