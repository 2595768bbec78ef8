import { expect, it } from "vitest";
import { faults } from "./faults.ts";

it("whatever a provider does, its client is told in its protocol, and the ledger has the row", async () => {
  const { wrong, counts } = await faults({ times: 1, seed: 7, only: "", patience: 10 });
  expect(wrong).toEqual([]);
  expect(counts["requests"]).toBeGreaterThan(1_500);
}, 240_000);
