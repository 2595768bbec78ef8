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

it("half an hour has to show so many faults and calls, and less time what it can", () => {
  const whole = { seconds: 1_800, faults: 200, calls: 100_000 };
  expect(fellShort(whole)).toEqual([]);
  expect(fellShort({ ...whole, seconds: 60, faults: 1, calls: 1 })).toEqual([]);
  expect(fellShort({ ...whole, faults: 199 })).toHaveLength(1);
  expect(fellShort({ ...whole, calls: 99_999 })).toHaveLength(1);
});

it("what the database ended with a code that never comes is wrong, also where its line comes in parts", () => {
  const log = new Refusals();
  log.says("TG002 ERROR:  full\n00000 LOG:  40001 ERROR:\n4000");
  expect(log.wrong).toEqual([]);
  log.says("1 ERROR:  could not serialize access\n40P01 ERROR:  deadlock detected\n");
  expect(log.wrong).toHaveLength(2);
  expect([log.of("TG002"), log.of("40001")]).toEqual([1, 1]);
});

const AWAY = { requests: 40, nodes: 2, seconds: 6, patience: BESIDE_OTHERS };

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
    const verdict = await fleetRig({
      seconds: 20,
      nodes: 3,
      clients: 12,
      rate: 40,
      everyMs: 1_500,
      seed: 7,
    });
    expect(verdict.wrong).toEqual([]);
    // What a killed node had open is recovered: whether it had something open then is chance, so only the faults are asked for.
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
      besideMs: 2_000,
      seed: 7,
    });
    expect(verdict.wrong).toEqual([]);
    expect(verdict.counts).toMatchObject({ failed: 0, replaced: 4, versions: 2 });
    expect(verdict.counts["beside-requests"]).toBeGreaterThan(0);
  });

  it("while the database is away: refused at once, nothing sent, served again, and the ledger is the bill", async () => {
    const { wrong, counts } = await fleetRefuses(AWAY);
    expect(wrong).toEqual([]);
    expect(counts["refused"]).toBe(AWAY.requests);
  });

  it("where gateways go on alone: keys with slices served without one refusal, no limit overrun, all of it told", async () => {
    const { wrong, counts } = await fleetGoesOn(AWAY);
    expect(wrong).toEqual([]);
    expect(counts["served"]).toBeGreaterThanOrEqual(AWAY.requests);
  });

  it("a budget that all draw on: a batch is asked once, and a thousand calls hear a no together where it is spent", async () => {
    const of = { nodes: 3, flying: 96, seconds: 1, rounds: 1, delayMs: 0.3, fsyncMs: undefined };
    const { wrong, counts } = await fleetHot({ ...of, patience: BESIDE_OTHERS });
    expect(wrong).toEqual([]);
    expect(counts["row-a-second"]).toBeGreaterThan(0);
  });

  it("a gateway that dies between an answer and its row has given no whole answer", async () => {
    const { wrong, counts } = await fleetEnds({ calls: 8 });
    expect(wrong).toEqual([]);
    expect(counts["recovered"]).toBeGreaterThan(0);
  });

  it("is found: a client that is answered before the row is durable", async () => {
    const { wrong } = await fleetEnds({ calls: 8, plant: "late-settle" });
    expect(wrong).not.toEqual([]);
  });

  it("a revoked key, clocks that jump, and the database that comes late, as promised", async () => {
    const { wrong, counts } = await fleetFigures({
      tries: 6,
      only: ["revoked", "clocks", "late"],
      patience: BESIDE_OTHERS,
    });
    expect(wrong).toEqual([]);
    expect(Object.keys(counts)).toHaveLength(3);
  });

  it("a transaction that could not be put in an order is in the database's log, and counted", async () => {
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

  describe("the gate, asked by hand", () => {
    let postgres: Postgres;
    beforeAll(async () => {
      postgres = await startPostgres({ settings: ["deadlock_timeout=50ms"] });
    });
    afterAll(() => postgres?.[Symbol.asyncDispose]());

    it("lets one have the last room, locks in one order, ends a call once, hears no dead node, keeps slices", async () => {
      expect(await fleetGate(postgres)).toEqual([]);
    });

    it.each(Object.keys(PLANTS))("is found out: %s", async (plant) => {
      expect(await fleetGate(postgres, plant)).not.toEqual([]);
    });
  });

  it.each(["no-hold", "no-count"])("many calls at once find: %s", async (plant) => {
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
