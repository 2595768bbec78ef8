import { describe, it } from "vitest";
import { storeConformance } from "../../../src/testing/store.ts";
import { makeMemory, makeSqlite } from "./made.ts";

describe("the memory store", () => {
  for (const { name, run } of storeConformance(makeMemory)) it(name, run);
});

describe("the sqlite store", () => {
  for (const { name, run } of storeConformance(() => makeSqlite({ durability: "power" })))
    it(name, run);
});
