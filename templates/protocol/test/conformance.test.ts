// What every protocol has to keep, and the plugins that speak it. package.json says how they would be mounted.
import { protocolLaws } from "tollgate/testing";
import { conform } from "tollgate/testing/vitest";
import { test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import frontend from "../src/frontend.ts";
import { protocol } from "../src/index.ts";
import provider from "../src/provider.ts";

const { plugins, recordings } = manifest.tollgate;

for (const { name, run } of protocolLaws(protocol(), { recordings })) test(name, run);

conform(frontend, { recordings, module: new URL("../src/frontend.ts", import.meta.url) });
conform(provider, {
  ...plugins["./provider"],
  recordings,
  module: new URL("../src/provider.ts", import.meta.url),
});
