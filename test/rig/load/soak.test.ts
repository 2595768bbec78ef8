import { expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { slope, soak } from "./soak.ts";

// `npm run rig soak -- --minutes 30` checks the growth per hour.
const SHORT = { seed: 7, seconds: 16, warm: 8, perSecond: 60, reloadMs: 5_000 };
/** A planted leak shows in half of the time. */
const PLANTED = { ...SHORT, seconds: 8, warm: 4 };

// Each mostly waits, so in parallel they take as long as the longest.
it.concurrent("ordinary traffic with faults, disconnects, and reloads is served, without leaks", async () => {
  const said: string[] = [];
  const { wrong, counts } = await soak(SHORT, (line) => said.push(line));
  expect(wrong, said.join("\n")).toEqual([]);
  expect(counts["reloads"]).toBeGreaterThan(0);
}, 120_000);

it.concurrent.each(["keeps", "opens"] as const)(
  "a gateway that %s is detected",
  async (mutant) => {
    const said = mutant === "keeps" ? /in use grew/ : /open files/;
    await expectCaught(said, (seed) => soak({ ...PLANTED, seed, mutant }, () => {}));
  },
  600_000,
);

it("the fitted line has the least error", () => {
  const hour = (h: number, live: number) => ({ at: h * 3_600_000, live });
  expect(slope([hour(0, 5), hour(1, 8), hour(2, 11)])).toBeCloseTo(3);
  expect(slope([hour(0, 7), hour(1, 7)])).toBe(0);
});
