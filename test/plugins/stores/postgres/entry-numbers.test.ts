// Entries get their numbers in the background from one gateway at a time, a few times per second,
// and all of them get one.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../../../src/plugin/store/store.ts";
import { reserveCommand } from "../../../../src/testing/store.ts";
import { installTestClock } from "../../../kit/clock.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../kit/database/postgres.ts";
import { until } from "../../../kit/wait.ts";
import { askAt, makePostgres } from "../postgres-under-test.ts";

async function leftAt(ask: ReturnType<typeof askAt>["ask"]): Promise<number> {
  const [row] = await ask("SELECT count(*) AS many FROM tollgate.batch WHERE seq IS NULL");
  return Number(row!["many"]);
}

describe.skipIf(!hasPostgres())("entry numbers assigned in the background", () => {
  let server: Postgres;
  beforeAll(async () => void (server = await startPostgres({ settings: ["track_functions=pl"] })));
  afterAll(() => server?.[Symbol.asyncDispose]());

  it("are assigned by one gateway at a time, and not twice in a short time", async () => {
    const url = await server.database();
    const { store, dispose } = await makePostgres(url);
    await using by = askAt(url);
    await using other = askAt(url);
    await store.open({ instance: "one" });
    await store.apply([reserveCommand("a.1", { at: Date.now(), claims: [] })]);
    await by.ask("UPDATE tollgate.chain SET sequenced_at = clock_timestamp()");
    // No reader waits for this.
    expect((await store.listEntries({}, { limit: 9 })).items).toHaveLength(1);
    // It runs in the background itself.
    await dispose();
    const soon = async () =>
      (await other.ask("SELECT tollgate.assign_sequence_1(9, false) AS many"))[0]!;
    await by.ask("BEGIN");
    await by.ask("UPDATE tollgate.chain SET sequenced_at = '-infinity'");
    expect(await soon()).toEqual({ many: null });
    await by.ask("COMMIT");
    // Nor later than that if the database's clock was set back.
    await by.ask("UPDATE tollgate.chain SET sequenced_at = clock_timestamp() + interval '1 hour'");
    expect((await soon())["many"]).not.toBeNull();
    // A busy machine may delay the time between the two.
    await until(async () => {
      await by.ask("UPDATE tollgate.chain SET sequenced_at = clock_timestamp()");
      return (await soon())["many"] === null;
    });
  });

  it("are assigned to entries that were written just after another gateway's turn", async () => {
    const url = await server.database();
    const { store, dispose } = await makePostgres(url);
    await using by = askAt(url);
    await store.open({ instance: "one" });
    const time = installTestClock();
    time.stop();
    await store.apply([reserveCommand("c.1", { at: Date.now(), claims: [] })]);
    // Another one runs it before this one checks.
    await by.ask("SELECT tollgate.assign_sequence_1(9, true)");
    await store.apply([reserveCommand("c.2", { at: Date.now(), claims: [] })]);
    time.skip(250);
    await until(async () => {
      time.skip(50);
      return (await leftAt(by.ask)) === 0;
    });
    time.go();
    await dispose();
  });

  it("are assigned to each last entry, although another gateway was active", async () => {
    const url = await server.database();
    const { store, openAnother, dispose } = await makePostgres(url);
    const stores: Store[] = [store];
    while (stores.length < 6) stores.push(await openAnother());
    for (const [i, one] of stores.entries()) await one.open({ instance: `node-${i}` });
    await using by = askAt(url);
    const called = async () => {
      const [row] = await by.ask(
        "SELECT coalesce(sum(calls), 0) AS many FROM pg_stat_user_functions WHERE funcname = 'assign_sequence_1'",
      );
      return Number(row!["many"]);
    };
    let n = 0;
    for (let i = 0; i < 100; i++)
      await Promise.all(
        stores.map((store) =>
          store.apply([reserveCommand(`b.${n++}`, { at: Date.now(), claims: [] })]),
        ),
      );
    await until(async () => (await leftAt(by.ask)) === 0);
    await dispose();
    // A few times per second, and not with each batch.
    expect(await called()).toBeLessThan(n / 2);
  });
});
