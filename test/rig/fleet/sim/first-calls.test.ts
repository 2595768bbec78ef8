// Parallel first calls of members overrun no scope, in many worlds.
import { beforeAll, expect, it } from "vitest";
import { NIGHTLY } from "../../../kit/law-effort.ts";
import { SimulatedDatabase } from "./database.ts";
import { firstCalls } from "./first-calls.ts";

const WORLDS = NIGHTLY ? 10_000 : 10;
let database: SimulatedDatabase;
beforeAll(async () => void (database = await SimulatedDatabase.create()), 120_000);

it(
  `parallel first calls overrun no limit and no group, in ${WORLDS} worlds`,
  { timeout: 3_600_000 },
  async () => {
    const { wrong, counts } = await firstCalls(database, { seed: 1, worlds: WORLDS });
    expect(wrong).toEqual([]);
    // Worlds without denials and restarts would pass too.
    for (const name of ["denied", "full", "restarts", "joined"])
      expect(counts[name], name).toBeGreaterThan(WORLDS / 20);
    if (NIGHTLY) console.log(`${WORLDS} worlds: ${JSON.stringify(counts)}`);
  },
);
