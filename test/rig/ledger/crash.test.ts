import { describe, expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { crash } from "./crash.ts";

const quiet = () => {};

it(
  "kill -9 at any moment: no row missing or doubled, exact rows equal the bill",
  { timeout: 180_000 },
  async () => {
    const verdict = await crash({ kills: 50, seed: 7, plant: "", say: quiet, withinMs: 90_000 });
    expect(verdict.wrong).toEqual([]);
    expect(verdict.counts["kills"]).toBeGreaterThan(5);
    expect(verdict.counts["recovered"]).toBeGreaterThan(0);
  },
);

describe("the rig finds", () => {
  it("no defect in a simple, correct store", async () => {
    expect((await crash({ kills: 1, seed: 1, plant: "none", say: quiet })).wrong).toEqual([]);
  });
  it.each([
    ["late-settle", /delivered, with 0 entries/],
    ["no-reserve", /billed, and not in the ledger/],
    ["no-unique-index", /settle twice/],
    ["small-presumption", /recovered 0, billed [1-9]/],
  ])("%s", async (plant, words) => {
    await expectCaught(words, (seed) => crash({ kills: 3, seed, plant, say: quiet }));
  });
});
