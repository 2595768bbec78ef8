import { expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { races } from "./connection-races.ts";

const SHORT = { seed: 7, requests: 1_500, clients: 12, waiting: 0 };

it("a connection that is closed while it is reused costs no client its response", async () => {
  const { wrong, counts } = await races(SHORT);
  expect(wrong).toEqual([]);
  // Without a repeated request, nothing was tested.
  expect(Number(counts["crossed"])).toBeGreaterThan(0);
  expect(Number(counts["calls"])).toBeGreaterThan(SHORT.requests);
});

it("a gateway without a retry is detected", async () => {
  await expectCaught(/told 502/, (seed) => races({ ...SHORT, seed, mutant: "never-again" }));
});

it("a request with two responses is found", async () => {
  const { wrong } = await races({ ...SHORT, requests: 20, mutant: "twice" });
  expect(wrong).toEqual(["r0 was answered 2 times upstream"]);
});
