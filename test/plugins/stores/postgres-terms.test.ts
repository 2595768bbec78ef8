// What calls have in common is written once on PostgreSQL, for each gateway. It goes with the last row that names it, and it is erased where it stands; a gateway
// that remembers it says it anew then, and no row is without it.
import * as fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { PostgresStore } from "../../../plugins/stores/postgres/store.ts";
import { NOON, reserve, settle } from "../../../src/testing/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../kit/postgres.ts";
import { until } from "../../kit/waits.ts";
import { askAt, makePostgres } from "./made-postgres.ts";

const LABELS = { user: "canary-4711" };
const DAY = 86_400_000;

describe.skipIf(!hasPostgres())("terms", () => {
  let server: Postgres;
  let url: string;
  let one: PostgresStore;
  let two: PostgresStore;
  let by: ReturnType<typeof askAt>;
  let end: () => Promise<void>;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
    by = askAt(url);
  });
  afterAll(async () => {
    await by?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    const made = await makePostgres(url);
    one = made.store as PostgresStore;
    two = (await made.another()) as PostgresStore;
    end = made.end;
    await one.open({ instance: "one" });
    await two.open({ instance: "two" });
    await by.ask("SET session_replication_role = replica");
  });
  afterEach(() => end());

  const call = async (store: PostgresStore, attempt: string) => {
    await store.apply([reserve(attempt, { labels: LABELS })]);
    await store.apply([settle(attempt)]);
  };
  const terms = async () => (await by.ask("SELECT node, id FROM tollgate.terms")).length;
  const said = async (attempt: string) =>
    (await one.entries({ attempt })).items.map(({ labels }) => labels);

  it("are written once, also where a batch goes the exact way", async () => {
    for (const attempt of ["a", "b"]) await call(one, attempt);
    const late = { attempt: "a", costNano: -2n, reason: "refund", actor: "x" };
    await one.apply([{ do: "adjust", at: NOON + 1, ...late }]);
    await call(one, "c");
    expect(await terms()).toBe(1);
    await call(two, "d");
    expect(await terms()).toBe(2);
    expect(await one.verify!()).toEqual([]);
  });

  it("and rows are proved by what they say, whatever that is", async () => {
    const odd = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("", " ", "1 1 ", "\u{1F600}", "a\nb", "\\", '"', "é"),
    );
    const calls = fc.array(
      fc.record(
        { attempt: odd, outcome: odd, upstreamId: odd },
        { requiredKeys: ["attempt", "outcome"] },
      ),
      { minLength: 1, maxLength: 5 },
    );
    let n = 0;
    await fc.assert(
      fc.asyncProperty(calls, async (all) => {
        for (const { attempt: name, ...more } of all) {
          const attempt = `${++n}${name.replaceAll("\0", "").toWellFormed()}`;
          await one.apply([reserve(attempt, { labels: { [name]: name } })]);
          await one.apply([settle(attempt, { ...more, usage: { input: 1, seconds: 0.5 } })]);
        }
        expect(await one.verify!()).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });

  it("that were erased are said anew by each gateway that names them, and what was erased stays so", async () => {
    await call(one, "a");
    await call(two, "b");
    await one.keeping!.erase!({ label: { name: "user", value: LABELS.user } });
    for (const [store, attempt] of [
      [one, "c"],
      [two, "d"],
    ] as const)
      await call(store, attempt);
    expect(await said("a")).toEqual([{ user: "erased" }, { user: "erased" }]);
    expect(await said("b")).toEqual([{ user: "erased" }, { user: "erased" }]);
    expect(await said("c")).toEqual([LABELS, LABELS]);
    expect(await said("d")).toEqual([LABELS, LABELS]);
    expect(await one.verify!()).toEqual([]);
  });

  it("go with the last row that names them, and a gateway that remembers them says them anew", async () => {
    await call(one, "a");
    await call(two, "b");
    await one.keeping!.prune!(NOON + DAY);
    expect(await by.ask("SELECT 1 FROM tollgate.booked")).toEqual([]);
    expect(await terms()).toBe(0);
    await call(one, "c");
    await call(two, "d");
    expect(await said("c")).toEqual([LABELS, LABELS]);
    expect(await said("d")).toEqual([LABELS, LABELS]);
    expect(await one.verify!()).toEqual([]);
  });

  it("do not go under a batch that is being written", async () => {
    const claims = [
      { scope: "key:k", unit: "nano_usd", max: 1_000n, per: "total", take: 1n },
    ] as const;
    await one.apply([reserve("a", { claims })]);
    await one.apply([settle("a", { costNano: 0n })]);
    await by.ask("DELETE FROM tollgate.booked");
    await using holder = askAt(url);
    await using sweeper = askAt(url);
    await holder.ask("BEGIN");
    await holder.ask("SELECT 1 FROM tollgate.meter FOR UPDATE");
    const writes = one.apply([reserve("b", { claims })]);
    const waiting = async (many: number) =>
      until(async () => {
        const rows = await by.ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
        return rows.length >= many;
      });
    await waiting(1);
    const sweeps = sweeper.ask("SELECT tollgate.sweep_1() AS gone");
    // Where nothing holds it back it is over at once.
    await Promise.race([waiting(2), sweeps]);
    await holder.ask("COMMIT");
    await Promise.all([writes, sweeps]);
    expect((await one.entries({ attempt: "b" })).items).toHaveLength(1);
  });

  it("of a gateway that cannot be held are for the next time; those of the others go", async () => {
    await call(one, "a");
    await call(two, "b");
    await by.ask("DELETE FROM tollgate.booked");
    await using holder = askAt(url);
    await holder.ask("BEGIN");
    await holder.ask("SELECT 1 FROM tollgate.node WHERE id = 'one' FOR UPDATE");
    expect(await by.ask("SELECT tollgate.sweep_1() AS gone")).toEqual([{ gone: "1" }]);
    await holder.ask("COMMIT");
    expect(await by.ask("SELECT tollgate.sweep_1() AS gone")).toEqual([{ gone: "1" }]);
  });
});
