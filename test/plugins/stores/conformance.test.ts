import { describe, it } from "vitest";
import { storeConformance } from "../../../src/testing/store.ts";
import { makeMemory, makeSqlite } from "./made.ts";

describe("the memory store", () => {
  for (const { name, run } of storeConformance(makeMemory)) it(name, run);
});

for (const durability of ["power", "process"] as const)
  describe(`the sqlite store, ${durability}`, () => {
    for (const { name, run } of storeConformance(() => makeSqlite({ durability }))) it(name, run);
  });
