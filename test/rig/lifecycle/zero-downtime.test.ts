// A short form of the rig that holds a gateway's ports: each event once, and each planted defect,
// which must be found.
import { expect, it } from "vitest";
import { EVENTS, unbroken } from "./zero-downtime.ts";

it("a kill, a shutdown, a restart, and a new certificate: only requests interrupted by the kill fail", async () => {
  const { wrong, counts } = await unbroken({ events: EVENTS, workers: 1, seed: 3 });
  expect(wrong).toEqual([]);
  expect(Number(counts["delivered"])).toBeGreaterThan(20);
}, 240_000);

it("a kill in place of a handover is detected", async () => {
  const planted = { events: ["usr2"], planted: "kill-for-usr2" } as const;
  const { wrong } = await unbroken({ ...planted, workers: 1, seed: 3 });
  expect(wrong.length).toBeGreaterThan(0);
}, 240_000);
