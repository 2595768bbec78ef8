import { expect, it } from "vitest";
import { BESIDE_OTHERS } from "../rig.ts";
import { found, largeLedger } from "./ledger-size.ts";

it("a month of calls is reported during commits, to the nano-dollar", async () => {
  const { wrong, counts } = await largeLedger({
    rows: 200_000,
    timed: 600,
    seed: 7,
    patience: BESIDE_OTHERS,
    say: () => {},
  });
  expect(wrong).toEqual([]);
  expect(counts["rows"]).toBe(200_000);
});

// Two that violate time limits run manually: `--mutant holding` and `--mutant unsummed`.
it.concurrent.each([
  ["forgetful", /: said \d+, written \d+/],
  ["twice", /: said \d+, written \d+/],
  ["zoneless", / there: said \d+, written \d+/],
] as const)("a ledger that is %s is detected", async (mutant, said) => {
  const wrong = await found(mutant, { rows: 20_000, timed: 20, seed: 7 });
  expect(wrong.join("\n")).toMatch(said);
});
