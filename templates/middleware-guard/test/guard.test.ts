// Runs the cases in passthrough and translated mode, with each stream split in every place. check-plugin runs the same cases.
import { testHooks } from "tollgate/testing/vitest";
import plugin from "../src/index.ts";
import cases from "./cases.json" with { type: "json" };

testHooks(plugin, cases);
