import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { until } from "../../kit/wait.ts";
import { fleetGoesOn, fleetRefuses } from "./fleet-outage.ts";
import { fleetBudget } from "./fleet-budget.ts";
import { fleetEnds } from "./fleet-settlement.ts";
import { fleetFigures } from "./figures/fleet-figures.ts";
import { fleetGate } from "./fleet-apply-batch.ts";
import { fellShort, fleetRig } from "./fleet.ts";
import { PLANTS } from "./fleet-sql-mutants.ts";
import { fleetHot } from "./fleet-hot-budget.ts";
import { LOGGED, Refusals } from "./fleet-aborted-transactions.ts";
import { fleetRoll } from "./fleet-rolling-update.ts";
import { BESIDE_OTHERS } from "../rig.ts";

it("half an hour must include a minimum of faults and calls, and a shorter run as many as possible", () => {
  const whole = { seconds: 1_800, faults: 200, calls: 100_000 };
  expect(fellShort(whole)).toEqual([]);
  expect(fellShort({ ...whole, seconds: 60, faults: 1, calls: 1 })).toEqual([]);
  expect(fellShort({ ...whole, faults: 199 })).toHaveLength(1);
  expect(fellShort({ ...whole, calls: 99_999 })).toHaveLength(1);
});

it("an unexpected database error code is found, also if its line arrives in parts", () => {
  const log = new Refusals();
  log.says("TG002 ERROR:  full\n00000 LOG:  40001 ERROR:\n4000");
  expect(log.wrong).toEqual([]);
  log.says("1 ERROR:  could not serialize access\n40P01 ERROR:  deadlock detected\n");
  expect(log.wrong).toHaveLength(2);
  expect([log.of("TG002"), log.of("40001")]).toEqual([1, 1]);
});

const AWAY = { requests: 40, nodes: 2, seconds: 6, patience: BESIDE_OTHERS };

describe.skipIf(!hasPostgres())("several gateways on one PostgreSQL", { timeout: 180_000 }, () => {
  it("500 concurrent calls on a budget for 50: exactly 50; with one gateway killed, never more", async () => {
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

  it("under all faults: no row missing or doubled, no budget exceeded, exact rows equal the bill", async () => {
    const verdict = await fleetRig({
      seconds: 20,
      nodes: 3,
      clients: 12,
      rate: 40,
      everyMs: 1_500,
      seed: 7,
    });
    expect(verdict.wrong).toEqual([]);
    // Calls that a killed node had open are recovered. Whether there were any is random, so only
    // the faults are required.
    expect(verdict.counts["faults"]).toBeGreaterThan(0);
    expect(verdict.counts["delivered"]).toBeGreaterThan(0);
  });

  it("rolling restarts, with the same version and the next one: no request fails, and the ledger equals the bill", async () => {
    const verdict = await fleetRoll({
      nodes: 2,
      clients: 4,
      pollMs: 200,
      announceMs: 3_000,
      restarts: 1,
      besideMs: 2_000,
      seed: 7,
    });
    expect(verdict.wrong).toEqual([]);
    expect(verdict.counts).toMatchObject({ failed: 0, replaced: 4, versions: 2 });
    expect(verdict.counts["beside-requests"]).toBeGreaterThan(0);
  });

  it("during a database outage: calls are rejected immediately and not sent, served again afterwards, and the ledger equals the bill", async () => {
    const { wrong, counts } = await fleetRefuses(AWAY);
    expect(wrong).toEqual([]);
    expect(counts["refused"]).toBe(AWAY.requests);
  });

  it("in offline mode: keys with leases are served without a rejection, no limit is exceeded, and all rows arrive", async () => {
    const { wrong, counts } = await fleetGoesOn(AWAY);
    expect(wrong).toEqual([]);
    expect(counts["served"]).toBeGreaterThanOrEqual(AWAY.requests);
  });

  it("a shared budget: a batch needs one query, and a thousand calls are rejected together when it is spent", async () => {
    const of = { nodes: 3, flying: 96, seconds: 1, rounds: 1, delayMs: 0.3, fsyncMs: undefined };
    const { wrong, counts } = await fleetHot({ ...of, patience: BESIDE_OTHERS });
    expect(wrong).toEqual([]);
    expect(counts["row-a-second"]).toBeGreaterThan(0);
  });

  it("a gateway that dies between a response and its row has not completed the response", async () => {
    const { wrong, counts } = await fleetEnds({ calls: 8 });
    expect(wrong).toEqual([]);
    expect(counts["recovered"]).toBeGreaterThan(0);
  });

  it("control: a client with a response before the row is durable is found", async () => {
    const { wrong } = await fleetEnds({ calls: 8, plant: "late-settle" });
    expect(wrong).not.toEqual([]);
  });

  it("a revoked key, clock jumps, and a slow database behave as documented", async () => {
    const { wrong, counts } = await fleetFigures({
      tries: 6,
      only: ["revoked", "clocks", "late"],
      patience: BESIDE_OTHERS,
    });
    expect(wrong).toEqual([]);
    expect(Object.keys(counts)).toHaveLength(3);
  });

  it("serialization failures are in the database's log, and counted", async () => {
    const log = new Refusals();
    await using postgres = await startPostgres({ settings: LOGGED, says: log.says });
    const ends = "DO $$ BEGIN RAISE EXCEPTION 'crossed' USING ERRCODE = '40001'; END $$";
    await postgres.sql(postgres.url, ends).catch(() => undefined);
    await until(() => log.of("40001") === 1);
    await postgres.stop();
    await postgres.start();
    await postgres.sql(postgres.url, ends).catch(() => undefined);
    await until(() => log.of("40001") === 2);
  });

  describe("the admission function, called directly", () => {
    let postgres: Postgres;
    beforeAll(async () => {
      postgres = await startPostgres({ settings: ["deadlock_timeout=50ms"] });
    });
    afterAll(() => postgres?.[Symbol.asyncDispose]());

    it("admits one call to the last budget, locks in one order, ends a call once, ignores dead nodes, and keeps leases", async () => {
      expect(await fleetGate(postgres)).toEqual([]);
    });

    it.each(Object.keys(PLANTS))("a planted defect is detected: %s", async (plant) => {
      expect(await fleetGate(postgres, plant)).not.toEqual([]);
    });
  });

  it.each(["no-hold", "no-count"])("many concurrent calls detect: %s", async (plant) => {
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
