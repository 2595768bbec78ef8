// Runs the checks of the protocol, and the contract checks of its plugins with the options in package.json.
import { protocolChecks } from "tollgate/testing";
import { testConformance } from "tollgate/testing/vitest";
import { test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import frontend from "../src/frontend.ts";
import { protocol } from "../src/index.ts";
import provider from "../src/provider.ts";

const { plugins, recordings } = manifest.tollgate;

for (const { name, run } of protocolChecks(protocol(), { recordings })) test(name, run);

testConformance(frontend, { recordings, module: new URL("../src/frontend.ts", import.meta.url) });
testConformance(provider, {
  ...plugins["./provider"],
  recordings,
  module: new URL("../src/provider.ts", import.meta.url),
});
