// The worlds of parallel first calls find each planted defect.
import { beforeAll, expect, it } from "vitest";
import { SimulatedDatabase } from "./database.ts";
import { FIRST_CALL_PLANTS, firstCalls } from "./first-calls.ts";

let database: SimulatedDatabase;
beforeAll(async () => void (database = await SimulatedDatabase.create()), 120_000);

it.each(Object.keys(FIRST_CALL_PLANTS))("finds %s", { timeout: 600_000 }, async (name) => {
  const remove = await FIRST_CALL_PLANTS[name]!(database);
  try {
    const { wrong } = await firstCalls(database, { seed: 1, worlds: 60 });
    expect(wrong.length).toBeGreaterThan(0);
  } finally {
    remove();
  }
});
