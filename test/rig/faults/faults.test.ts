import { expect, it } from "vitest";
import { faults } from "./faults.ts";

it("whatever a provider does, its client gets an error of its protocol, and the ledger has the row", async () => {
  const { wrong, counts } = await faults({ times: 1, seed: 7, only: "", patience: 10 });
  expect(wrong).toEqual([]);
  expect(counts["requests"]).toBeGreaterThan(3_000);
}, 480_000);

it.each([
  ["shapeless", "500", /^500: no type: .*messages into/],
  ["billed", "500", /^500: 500 \S+, estimated/],
  ["late", "headers sent byte by byte", /: it took \d+ ms/],
  ["unhandled", "no failure (control)", /^the daemon logs: .*planted/],
] as const)(
  "a gateway with a call end that is %s is detected",
  async (mutant, only, found) => {
    // A busy machine is late too, which does not affect the other checks.
    const patience = mutant === "late" ? 0.5 : 10;
    const { wrong } = await faults({ times: 1, seed: 7, only, patience, mutant });
    expect(wrong.join("\n")).toMatch(new RegExp(found.source, "m"));
  },
  120_000,
);
