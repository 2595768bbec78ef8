import { expect, it } from "vitest";
import { DRILLS } from "./all.ts";
import { rig } from "./drills.ts";

it.each(Object.keys(DRILLS))("%s", async (only) => {
  const { wrong } = await rig.run({ only, seed: "1" }, () => {});
  expect(wrong).toEqual([]);
});
