import { expect, it } from "vitest";
import { restart } from "./restart.ts";

const POLLED = { restarts: 2, pollMs: 200, perSecond: 60, seed: 7 };

it("restarts under load behind a balancer lose no request", async () => {
  const { wrong, counts } = await restart({ ...POLLED, announceMs: 800 });
  expect(wrong).toEqual([]);
  expect(counts["asked"]).toBeGreaterThan(60);
});

it("a port that closes before the balancer has asked again loses some", async () => {
  const { wrong } = await restart({ ...POLLED, announceMs: 0 });
  expect(wrong).not.toEqual([]);
});
