// Gateways that need the same rows at the same time wait in one order: the database aborts none of
// them, which would only be retried.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reserveCommand } from "../../../../src/testing/store.ts";
import { MIGRATIONS } from "../../../../plugins/stores/postgres/schema/migrations.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../kit/database/postgres.ts";
import { until } from "../../../kit/wait.ts";
import { deadlocksIn } from "../../../rig/fleet/fleet-sql-mutants.ts";
import { askAt, makePostgres } from "../postgres-under-test.ts";

const ROUNDS = 60;
const LETTERS = [..."abcdef"];

describe.skipIf(!hasPostgres())("gateways do not deadlock", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres({ settings: ["deadlock_timeout=10ms"] });
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  /** Each connection reports its counters when it ends. */
  const deadlocks = async () => {
    const sql = (text: string) => server.sql(url, text);
    const many = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()";
    await until(async () => (await sql(many)) === "1");
    return deadlocksIn(sql);
  };

  it("on meters, some of them new, in either mode of a batch", async () => {
    const { store, openAnother, dispose } = await makePostgres(url);
    const stores = [store, await openAnother(), await openAnother(), await openAnother()];
    for (const [i, each] of stores.entries()) await each.open({ instance: `node ${i}` });
    for (let round = 0; round < ROUNDS; round++) {
      // Some exist, and the rest are new to all.
      const claim = (letter: string) => ({
        scope: `key:${letter < "d" ? "" : round}${letter}`,
        unit: "nano_usd" as const,
        max: 1_000_000_000n,
        per: "total" as const,
        take: 1n,
      });
      await Promise.all(
        stores.map((each, i) => {
          const claims = LETTERS.filter((_, l) => (round + i + l) % 3 !== 0).map(claim);
          const call = (n: number) =>
            reserveCommand(`${round}.${i}.${n}`, { at: 1_000 + n * (i % 2), claims });
          // Decided under locks for several moments.
          return each.apply([call(0), call(1)]);
        }),
      );
    }
    await dispose();
    expect(await deadlocks()).toEqual([]);
  });

  it("on the rows of gateways that meet for the first time in a lease", async () => {
    const { store, openAnother, dispose } = await makePostgres(url, {
      clock: "database",
      leaseMs: 1_000,
    });
    const other = await openAnother();
    await store.open({ instance: "one" });
    await other.open({ instance: "other" });
    const by = askAt(url);
    // As if a machine pauses between the first read and the second.
    const sound = /CREATE FUNCTION \S+\.heartbeat_1.*?\$beat\$;/s.exec(
      MIGRATIONS[0]!.expand("tollgate"),
    )![0];
    const slow = sound
      .replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
      .replace("  IF p_dead AND is_live THEN", "  PERFORM pg_sleep(0.4);\n$&");
    expect(slow).toContain("pg_sleep");
    await by.ask(slow);
    const epochs = await by.ask("SELECT epoch FROM tollgate.node WHERE state = 'live'");
    await by.ask(
      "UPDATE tollgate.node SET last_heartbeat = clock_timestamp() - lease + interval '200 ms'",
    );
    const said = await Promise.all(
      epochs.map(async ({ epoch }) => {
        await using line = askAt(url);
        return line.ask(`SELECT (tollgate.heartbeat_1(${epoch}, true, null, null))[1] AS live`);
      }),
    );
    expect(said.flat().map(({ live }) => live)).toEqual(["true", "true"]);
    await by.ask(sound.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"));
    await by[Symbol.asyncDispose]();
    await dispose();
    expect(await deadlocks()).toEqual([]);
  });
});
