// A short form of `npm run rig fleet-sim` and `npm run rig first-calls`: the store of several
// gateways in small simulations on virtual time. No assertion depends on the speed of the machine.
import { beforeAll, expect, it } from "vitest";
import { NIGHTLY } from "../../../kit/law-effort.ts";
import { simulated } from "./fleet-sim.ts";
import { SimulatedDatabase } from "./database.ts";
import { firstCalls } from "./first-calls.ts";
import { slowestKeyChange } from "./key-changes.ts";
import { world } from "./world.ts";

const WORLDS = NIGHTLY ? 20 : 3;
let database: SimulatedDatabase;
beforeAll(async () => void (database = await SimulatedDatabase.create()), 120_000);

it(
  `no budget is exceeded, no call is lost or doubled, and service returns after faults, in ${WORLDS} scenarios`,
  { timeout: 300_000 },
  async () => {
    const { failed, counts } = await simulated(database, { from: 8, worlds: WORLDS });
    expect(
      failed?.seen.wrong ?? [],
      `seed ${failed?.seed}\n${failed?.seen.done.join("\n")}`,
    ).toEqual([]);
    // Simulations without events would pass too.
    expect(counts["sent"]).toBeGreaterThan(60);
    expect(counts["denied"]).toBeGreaterThan(10);
    expect(counts["race"]).toBeGreaterThan(0);
  },
);

it("the same seed gives the same scenario", { timeout: 300_000 }, async () => {
  const [one, other] = [await world(database, 7), await world(database, 7)];
  expect(other.done).toEqual(one.done);
});

it(
  "a revoked key is reported to every other gateway within 1.5 s",
  { timeout: 300_000 },
  async () => {
    const changes = NIGHTLY ? 1_000 : 20;
    const slowest = await slowestKeyChange(database, { seed: 1, changes });
    expect(slowest).toBeLessThanOrEqual(1_500);
    // A report that comes at once would prove nothing.
    expect(slowest).toBeGreaterThan(500);
  },
);

const FIRST_CALLS = NIGHTLY ? 10_000 : 6;

it(
  `parallel first calls overrun no limit and no group, in ${FIRST_CALLS} worlds`,
  { timeout: 3_600_000 },
  async () => {
    const { wrong, counts } = await firstCalls(database, { seed: 1, worlds: FIRST_CALLS });
    expect(wrong).toEqual([]);
    // Worlds without denials and restarts would pass too.
    for (const name of ["denied", "full", "restarts", "joined"])
      expect(counts[name], name).toBeGreaterThan(FIRST_CALLS / 20);
    if (NIGHTLY) console.log(`${FIRST_CALLS} worlds: ${JSON.stringify(counts)}`);
  },
);
