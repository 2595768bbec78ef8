import { expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { clock } from "./clock.ts";

// Both mostly wait, so they run in parallel.
it.concurrent("waits and windows are right while the wall clock jumps", async () => {
  const { wrong } = await clock({ jumps: 10, seed: 7 });
  expect(wrong).toEqual([]);
});

it.concurrent("a gateway that waits by the wall clock is detected", async () => {
  await expectCaught(/a silent provider|a slow stream/, (seed) =>
    clock({ jumps: 10, seed, plant: "wall" }),
  );
});
