import { describe, it } from "vitest";
import {
  fleetConformance,
  storeConformance,
  type FleetUnderTest,
  type StoreUnderTest,
} from "../../../src/testing/store.ts";
import { sharedLedger } from "./several.ts";
import { makeMemory, makeSqlite } from "./made.ts";

const alone = async (made: Promise<StoreUnderTest>): Promise<FleetUnderTest> => {
  const { store, end } = await made;
  return { stores: [store], end };
};

describe("the memory store", () => {
  for (const { name, run } of storeConformance(makeMemory)) it(name, run);
  describe("as a fleet of one", () => {
    for (const { name, run } of fleetConformance(() => alone(makeMemory()))) it(name, run);
  });
});

describe("the sqlite store", () => {
  for (const { name, run } of storeConformance(() => makeSqlite({ durability: "power" })))
    it(name, run);
  describe("as a fleet of one", () => {
    const make = () => alone(makeSqlite({ durability: "process" }));
    for (const { name, run } of fleetConformance(make)) it(name, run);
  });
});

describe("a store of several gateways", () => {
  const make = async () => {
    const ledger = sharedLedger();
    return {
      store: ledger.store(),
      another: async () => ledger.store(),
      bury: async (instance: string) => ledger.bury(instance),
      async crash() {
        ledger.bury("first");
        return ledger.store();
      },
      end: async () => {},
    };
  };
  for (const { name, run } of storeConformance(make)) it(name, run);
  describe("as a fleet", () => {
    const fleet = async () => {
      const ledger = sharedLedger();
      return {
        stores: [ledger.store(), ledger.store(), ledger.store()],
        bury: async (instance: string) => ledger.bury(instance),
        end: async () => {},
      };
    };
    for (const { name, run } of fleetConformance(fleet)) it(name, run);
  });
});
