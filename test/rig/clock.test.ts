import { expect, it } from "vitest";
import { clock } from "./clock.ts";

it("no wait and no window is wrong while the wall clock jumps", async () => {
  const { wrong } = await clock({ jumps: 10, seed: 7 });
  expect(wrong).toEqual([]);
});

it("a gateway that waits by the wall clock is caught", async () => {
  const { wrong } = await clock({ jumps: 10, seed: 7, plant: "wall" });
  expect(wrong.join("\n")).toMatch(/a silent provider|a slow stream/);
});
