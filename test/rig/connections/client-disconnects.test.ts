import { expect, it } from "vitest";
import { hangups } from "./client-disconnects.ts";

// `npm run rig client-disconnects` checks how soon the upstream call ends. Here, other tests run on
// the machine.
const slow = (line: string) => line.includes("ms after its client left");

it("a client that disconnects at a random byte ends the upstream call and leaves a row for what was sent", async () => {
  const { wrong, counts } = await hangups({ times: 120, seed: 7, clients: 8 });
  expect(wrong.filter((line) => !slow(line))).toEqual([]);
  expect(counts["rows"]).toBe(120);
  expect(counts["cut"]).toBeGreaterThan(50);
});

it("the checker finds an upstream call that ends late", async () => {
  const { wrong } = await hangups({ times: 10, seed: 7, clients: 4, mutant: "keeps-upstream" });
  expect(wrong.some(slow)).toBe(true);
});
