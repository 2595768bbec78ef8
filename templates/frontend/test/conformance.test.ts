// What every plugin of this kind has to keep. package.json says how it would be mounted.
import { conform } from "tollgate/testing/vitest";
import manifest from "../package.json" with { type: "json" };
import plugin from "../src/index.ts";

conform(plugin, { ...manifest.tollgate, module: new URL("../src/index.ts", import.meta.url) });
