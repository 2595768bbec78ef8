// A short form of `npm run rig fleet-worlds`, on a real server. Nightly: in the commit run,
// fleet-sim.test.ts has the same rules, on virtual time.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { fleetWorlds } from "../../../../rig/fleet/fleet-worlds.ts";
import { world } from "./random-fleets.ts";

describe.skipIf(!hasPostgres())("small simulations of gateways on one budget", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres({ settings: ["fsync=off"] });
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
    "settle each call once, at its price, never above the limit, nothing left open: seed %i",
    async (seed) => {
      const { wrong, done } = await world(url, seed);
      expect(wrong, done.join("\n")).toEqual([]);
    },
  );

  it.each(["no-hold", "no-count"])("find the planted defect %s", async (plant) => {
    const { wrong } = await fleetWorlds({ worlds: 5, seed: 1, plant, say() {} });
    expect(wrong).toHaveLength(1);
  });
});
