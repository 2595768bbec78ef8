import { expect, it } from "vitest";
import { plugins } from "./plugins.ts";

const SHORT = { seed: 7, rounds: 12, clients: 2, deadly: [], alone: [] } as const;

it("broken plugins do not affect others, are named, and are quarantined if they keep failing", async () => {
  const { wrong, counts } = await plugins(SHORT);
  expect(wrong).toEqual([]);
  expect(counts["quarantined"]).toBe(5);
}, 240_000);

// Plugins that block, or fill a heap, need time: `npm run rig plugins`.
it("plugins that end their process end only one, and the ledger is exact", async () => {
  const { wrong } = await plugins({
    ...SHORT,
    rounds: 0,
    deadly: ["later", "exits"],
    alone: ["exits"],
  });
  expect(wrong).toEqual([]);
}, 240_000);

it("an isolated plugin affects neither others nor the process", async () => {
  const outside = ["read-a-file", "dial-out", "fork", "loop", "leak-bytes"] as const;
  const { wrong, counts } = await plugins({ ...SHORT, rounds: 0, outside });
  expect(wrong).toEqual([]);
  expect(counts["others"]).toBeGreaterThan(20);
}, 240_000);

it("control: one that runs in the gateway's process is found", async () => {
  const of = { ...SHORT, rounds: 0, outside: ["read-a-file", "exit"], mutant: "within" } as const;
  const { wrong } = await plugins({ ...of, patienceMs: 5_000 });
  expect(wrong.join("\n")).toMatch(/read-a-file: 200/);
  expect(wrong.join("\n")).toMatch(/exit: processes ended/);
}, 120_000);

it("control: a failing plugin without quarantine is found", async () => {
  const { wrong } = await plugins({ ...SHORT, rounds: 2 });
  expect(wrong.join("\n")).toContain("is not in quarantine");
}, 120_000);

it("control: a doubled row is found", async () => {
  const { wrong } = await plugins({ ...SHORT, rounds: 0, deadly: ["exits"], mutant: "twice" });
  expect(wrong.join("\n")).toContain("settle twice");
}, 120_000);
