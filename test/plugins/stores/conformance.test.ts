import { describe, it } from "vitest";
import { storeConformance } from "../../../src/testing/store.ts";
import { sharedLedger } from "./several.ts";
import { makeMemory, makeSqlite } from "./made.ts";

describe("the memory store", () => {
  for (const { name, run } of storeConformance(makeMemory)) it(name, run);
});

describe("the sqlite store", () => {
  for (const { name, run } of storeConformance(() => makeSqlite({ durability: "power" })))
    it(name, run);
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
});
