import { expect, it } from "vitest";
import { BESIDE_OTHERS } from "./rig.ts";
import { largeLedger } from "./ledger-size.ts";

it("a month of calls is told while commits go on, to the nano-dollar", async () => {
  const { wrong, counts } = await largeLedger({
    rows: 200_000,
    seed: 7,
    patience: BESIDE_OTHERS,
    say: () => {},
  });
  expect(wrong).toEqual([]);
  expect(counts["rows"]).toBe(200_000);
});
