// Runs the contract checks and the store checks with the options in package.json.
import { storeChecks, createStoreFactory } from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import plugin from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});

for (const { name, run } of storeChecks(createStoreFactory(plugin, manifest.tollgate.with)))
  test(name, run);
