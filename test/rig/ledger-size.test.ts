import { expect, it } from "vitest";
import { largeLedger } from "./ledger-size.ts";

it("a month of calls is told in 200 ms while commits go on, to the nano-dollar", async () => {
  const { wrong, counts } = await largeLedger({ rows: 200_000, seed: 7, say: () => {} });
  expect(wrong).toEqual([]);
  expect(counts["rows"]).toBe(200_000);
});
