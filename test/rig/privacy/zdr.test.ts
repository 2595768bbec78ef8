import { describe, expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { ENTRY_POINTS } from "./zdr-upstreams.ts";
import { zdr } from "./zdr.ts";

const run = (plant: "" | "once" | "forge" | "store", seed = 7) =>
  zdr({ cases: 5_000, requests: 400, plant, seed, say: () => {} });

describe("zero data retention, the short form of `npm run rig zdr`", () => {
  it("nothing private reaches a provider that stores it, and every receipt is right", async () => {
    const { wrong, counts } = await run("");
    expect(wrong).toEqual([]);
    expect(counts["bytes-kept"]).toBe(0);
    expect(counts["accepted"]).toBeGreaterThan(30);
    expect(counts["refused"]).toBeGreaterThan(30);
    expect(counts["doors-open"]).toBe(Object.keys(ENTRY_POINTS).length);
    expect(counts["doors-shut"]).toBe(Object.keys(ENTRY_POINTS).length);
    expect(counts["reloads"]).toBeGreaterThan(0);
  });

  it("a decision per request in place of per call is detected, in the rules and in the requests", async () => {
    const kept: unknown[] = [];
    await expectCaught(/reached once/, async (seed) => {
      const verdict = await run("once", seed);
      expect(verdict.wrong.join("\n")).toMatch(/^decision/m);
      kept.push(verdict.counts["bytes-kept"]);
      return verdict;
    });
    expect(kept.at(-1)).toBeGreaterThan(0);
  });

  it.each(["forge", "store"] as const)(
    "a middleware after zdr cannot loosen it: %s",
    async (plant) => {
      expect((await run(plant)).wrong).toEqual([]);
    },
  );
});
