// What every plugin of this kind has to keep. package.json says how it would be mounted.
import { testConformance } from "tollgate/testing/vitest";
import manifest from "../package.json" with { type: "json" };
import plugin from "../src/index.ts";

testConformance(plugin, {
  ...manifest.tollgate,
  module: new URL("../src/index.ts", import.meta.url),
});
