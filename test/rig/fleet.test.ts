import { describe, expect, it } from "vitest";
import { hasPostgres } from "../kit/postgres.ts";
import { fleetBudget } from "./fleet-budget.ts";
import { fleetRig } from "./fleet.ts";
import { PLANTS } from "./fleet-plants.ts";
import { fleetRoll } from "./fleet-roll.ts";

describe.skipIf(!hasPostgres())("several daemons on one PostgreSQL", { timeout: 180_000 }, () => {
  it("500 at once on a budget worth 50: exactly 50; with one of them killed meanwhile, never more", async () => {
    const verdict = await fleetBudget({
      rounds: 3,
      requests: 500,
      worth: 50,
      nodes: 3,
      kills: 3,
      parallel: 0,
      seed: 7,
    });
    expect(verdict.wrong).toEqual([]);
    expect(verdict.counts["kills"]).toBe(1);
  });

  it("while all of it breaks: nothing missing, nothing twice, no budget overrun, exact rows equal the bill", async () => {
    const verdict = await fleetRig({ seconds: 20, nodes: 3, clients: 8, seed: 7 });
    expect(verdict.wrong).toEqual([]);
    // What a killed node had open is presumed: whether it had something open then is chance, so only the faults are asked for.
    expect(verdict.counts["faults"]).toBeGreaterThan(0);
    expect(verdict.counts["delivered"]).toBeGreaterThan(0);
  });

  it("replaced one after the other, by the same version and by the next one: no request fails, and the ledger is the bill", async () => {
    const verdict = await fleetRoll({
      nodes: 2,
      clients: 4,
      pollMs: 200,
      announceMs: 3_000,
      restarts: 1,
      seed: 7,
    });
    expect(verdict.wrong).toEqual([]);
    expect(verdict.counts).toMatchObject({ failed: 0, replaced: 4, versions: 2 });
  });

  it.each(Object.keys(PLANTS))("the rig finds: %s", async (plant) => {
    const { wrong } = await fleetBudget({
      rounds: 1,
      requests: 120,
      worth: 30,
      nodes: 3,
      kills: 0,
      parallel: 6,
      seed: 7,
      plant,
    });
    expect(wrong).not.toEqual([]);
  });
});
