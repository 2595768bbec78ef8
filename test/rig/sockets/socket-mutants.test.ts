// The long form of the rig, and its planted defects.
import { expect, it } from "vitest";
import { expectCaught } from "../expect-caught.ts";
import { BESIDE_OTHERS } from "../rig.ts";
import { MUTANTS } from "./socket-mutants.ts";
import { sockets } from "./sockets.ts";

it("no response is unbilled or billed twice in 20 worlds", { timeout: 900_000 }, async () => {
  const { wrong, counts } = await sockets(
    { worlds: 20, seed: 7, patience: BESIDE_OTHERS },
    () => {},
  );
  expect(wrong).toEqual([]);
  for (const state of ["exact", "estimated", "recovered"])
    expect(counts[state]).toBeGreaterThan(10);
});

it.each(Object.keys(MUTANTS) as (keyof typeof MUTANTS)[])(
  "finds the defect %s",
  { timeout: 600_000 },
  async (mutant) => {
    const { only, found } = MUTANTS[mutant];
    await expectCaught(found, (seed) =>
      // Defects that never end are found sooner without patience.
      sockets({ worlds: 1, lives: 1, seed, mutant, only }, () => {}),
    );
  },
);
