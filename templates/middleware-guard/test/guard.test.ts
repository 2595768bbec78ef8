// What it lets pass and what it refuses: on both lanes, and wherever an answer is cut. check-plugin runs the same cases.
import { testHooks } from "tollgate/testing/vitest";
import plugin from "../src/index.ts";
import cases from "./cases.json" with { type: "json" };

testHooks(plugin, cases);
