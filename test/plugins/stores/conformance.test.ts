import { describe, it } from "vitest";
import {
  fleetChecks,
  storeChecks,
  type FleetUnderTest,
  type StoreUnderTest,
} from "../../../src/testing/store.ts";
import { sharedLedger } from "./memory-fleet-store.ts";
import { makeMemory, makeSqlite } from "./stores-under-test.ts";

const alone = async (made: Promise<StoreUnderTest>): Promise<FleetUnderTest> => {
  const { store, dispose } = await made;
  return { stores: [store], dispose };
};

describe("the memory store", () => {
  for (const { name, run } of storeChecks(makeMemory)) it(name, run);
  describe("as a fleet of one", () => {
    for (const { name, run } of fleetChecks(() => alone(makeMemory()))) it(name, run);
  });
});

describe("the sqlite store", () => {
  for (const { name, run } of storeChecks(() => makeSqlite({ durability: "power" }))) it(name, run);
  describe("as a fleet of one", () => {
    const make = () => alone(makeSqlite({ durability: "process" }));
    for (const { name, run } of fleetChecks(make)) it(name, run);
  });
});

describe("a store of several gateways", () => {
  const make = async () => {
    const ledger = sharedLedger();
    return {
      store: ledger.store(),
      openAnother: async () => ledger.store(),
      expireLease: async (instance: string) => ledger.bury(instance),
      async crash() {
        ledger.bury("first");
        return ledger.store();
      },
      dispose: async () => {},
    };
  };
  for (const { name, run } of storeChecks(make)) it(name, run);
  describe("as a fleet", () => {
    const fleet = async () => {
      const ledger = sharedLedger();
      return {
        stores: [ledger.store(), ledger.store(), ledger.store()],
        expireLease: async (instance: string) => ledger.bury(instance),
        dispose: async () => {},
      };
    };
    for (const { name, run } of fleetChecks(fleet)) it(name, run);
  });
});
