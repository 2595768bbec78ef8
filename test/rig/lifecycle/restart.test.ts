import { expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { restart } from "./restart.ts";

// The shutdown is announced for ten checks of a load balancer, so one late check loses nothing.
const POLLED = { restarts: 2, pollMs: 200, perSecond: 60, seed: 7 };

it("restarts under load behind a load balancer lose no request", async () => {
  const { wrong, counts } = await restart({ ...POLLED, announceMs: 2_000 });
  expect(wrong).toEqual([]);
  expect(counts["asked"]).toBeGreaterThan(60);
});

it("a port that closes before the load balancer has checked loses some", async () => {
  await expectCaught(/./, (seed) => restart({ ...POLLED, pollMs: 1_000, announceMs: 0, seed }));
});
