// The simulator finds each defect that `npm run rig fleet-apply-batch` plants into the database's
// functions, in a fixed number of simulations.
import { beforeAll, expect, it } from "vitest";
import { PLANTS } from "../fleet-sql-mutants.ts";
import { simulated } from "./fleet-sim.ts";
import { SimulatedDatabase } from "./database.ts";

let database: SimulatedDatabase;
beforeAll(async () => void (database = await SimulatedDatabase.create()), 120_000);

it.each(Object.keys(PLANTS))("finds %s", { timeout: 600_000 }, async (plant) => {
  await database.plant(plant);
  const { failed } = await simulated(database, { from: 1, worlds: 60 });
  expect(failed?.seen.wrong.length ?? 0).toBeGreaterThan(0);
});
