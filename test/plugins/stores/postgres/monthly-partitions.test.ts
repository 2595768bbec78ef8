// Monthly partitions: each is created before the month starts, by any clock and time zone of the
// database, and dropped with its last row.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { PostgresStore } from "../../../../plugins/stores/postgres/store.ts";
import { createPeriodicMaintenance } from "../../../../plugins/stores/postgres/membership/periodic-maintenance.ts";
import { NOON, reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../kit/database/postgres.ts";
import { askAt, makePostgres } from "../postgres-under-test.ts";

const DAY = 86_400_000;
/** Of a moment: "2026_06" */
const monthOf = (at: number) => new Date(at).toISOString().slice(0, 7).replace("-", "_");
const after = (month: string, many = 1) => {
  const [year, number] = month.split("_").map(Number) as [number, number];
  return monthOf(Date.UTC(year, number - 1 + many));
};

it("the next month's partition is created within an hour, also by an idle gateway", async () => {
  vi.useFakeTimers();
  try {
    const asked: string[] = [];
    const upkeep = createPeriodicMaintenance(async ({ text }) => {
      asked.push(text);
      return [];
    }, "s");
    const looks = () => asked.filter((text) => text.includes("s.create_partitions_1(1)")).length;
    upkeep.start();
    await vi.advanceTimersByTimeAsync(3 * 3_600_000 + 1);
    expect(looks()).toBe(3);
    upkeep.stop();
    await vi.advanceTimersByTimeAsync(3 * 3_600_000);
    expect(looks()).toBe(3);
  } finally {
    vi.useRealTimers();
  }
});

describe.skipIf(!hasPostgres())("monthly partitions of a postgres store", () => {
  let server: Postgres;
  let url: string;
  let by: ReturnType<typeof askAt>;
  let store: PostgresStore;
  let end: () => Promise<void>;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    const made = await makePostgres(url);
    store = made.store as PostgresStore;
    end = made.dispose;
    await store.open({ instance: "one" });
    by = askAt(url);
    // Functions without a schema prefix find this clock before the server's own.
    await by.ask("DROP SCHEMA IF EXISTS wrong CASCADE");
    await by.ask("CREATE SCHEMA wrong");
  });
  afterEach(async () => {
    for (const month of await months("ledger_row"))
      for (const table of ["ledger_row", "batch"])
        await by.ask(`DROP TABLE IF EXISTS tollgate.${table}_${month}`);
    await by.ask("SET search_path = public");
    await by.ask("SELECT tollgate.create_partitions_1(1)");
    await by[Symbol.asyncDispose]();
    await end();
  });

  const months = async (table: "ledger_row" | "batch"): Promise<string[]> => {
    const rows = await by.ask(
      `SELECT right(c.relname, 7) AS month FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
        WHERE h.inhparent = 'tollgate.${table}'::regclass AND c.relname ~ '_\\d{4}_\\d{2}$' ORDER BY 1`,
    );
    return rows.map((row) => row["month"]!);
  };
  /** The time for this test's connection. */
  const clock = async (at: string, zone = "UTC") => {
    await by.ask(
      `CREATE OR REPLACE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '${at}'::timestamptz $$`,
    );
    await by.ask("SET search_path = wrong, pg_catalog");
    await by.ask(`SET timezone = '${zone}'`);
  };
  const lies = async (attempt: string) => {
    const rows = await by.ask(
      `SELECT DISTINCT c.relname AS place FROM tollgate.ledger_row e JOIN pg_class c ON c.oid = e.tableoid WHERE e.attempt = '${attempt}'`,
    );
    return rows.map((row) => row["place"]);
  };

  it("exist for this month and the next one from the start, and rows are in them", async () => {
    const now = monthOf(Date.now());
    for (const table of ["ledger_row", "batch"] as const)
      expect(await months(table)).toEqual([now, after(now)]);
    await store.apply([reserveCommand("now", { at: Date.now() })]);
    expect(await lies("now")).toEqual([`ledger_row_${now}`]);
    const [row] = await by.ask(
      "SELECT DISTINCT c.relname AS place FROM tollgate.batch b JOIN pg_class c ON c.oid = b.tableoid",
    );
    expect(row!["place"]).toBe(`batch_${now}`);
  });

  it.each(["UTC", "America/Los_Angeles", "Pacific/Auckland", "Asia/Kolkata"])(
    "the next one is made ahead in every month, in the zone %s",
    async (zone) => {
      for (let month = "2040_01"; month !== "2041_02"; month = after(month))
        for (const moment of ["01 00:00:00.001", "27 23:59:59.9"]) {
          await clock(`${month.replace("_", "-")}-${moment}+00`, zone);
          await by.ask("SELECT tollgate.create_partitions_1(1)");
          for (const table of ["ledger_row", "batch"] as const)
            expect((await months(table)).at(-1), `${table} on ${month} ${moment}`).toBe(
              after(month),
            );
        }
      const made = (await months("ledger_row")).filter((month) => month.startsWith("204"));
      expect(made).toHaveLength(14);
    },
  );

  it("end at the last millisecond of a month, in UTC", async () => {
    await clock("2040-12-31 12:00:00+00", "America/Los_Angeles");
    await by.ask("SELECT tollgate.create_partitions_1(1)");
    const turn = Date.UTC(2041, 0);
    await store.apply([
      reserveCommand("last", { at: turn - 1 }),
      reserveCommand("first", { at: turn }),
    ]);
    // The end of a call is in the partition of its start.
    await store.apply([settleCommand("last", { at: turn + DAY })]);
    expect([await lies("last"), await lies("first")]).toEqual([
      ["ledger_row_2040_12"],
      ["ledger_row_2041_01"],
    ]);
  });

  it("are not required: rows of a missing month are stored nevertheless, and several gateways may create one", async () => {
    await store.apply([reserveCommand("early", { at: Date.UTC(2040, 5, 5) })]);
    expect(await lies("early")).toEqual(["ledger_row_other"]);
    const others = [askAt(url), askAt(url), askAt(url)];
    for (const month of ["2040-06", "2040-07"])
      await Promise.all(
        others.map(({ ask }) => ask(`SELECT tollgate.create_partition_1('${month}-15')`)),
      );
    for (const other of others) await other[Symbol.asyncDispose]();
    for (const table of ["ledger_row", "batch"] as const)
      expect((await months(table)).filter((month) => month.startsWith("2040"))).toEqual([
        "2040_07",
      ]);
    expect((await store.listEntries({ attempt: "early" })).items).toHaveLength(1);
  });

  it("are dropped by a prune if empty, except current and future ones", async () => {
    await by.ask(`SELECT tollgate.create_partition_1(to_timestamp(${NOON / 1_000}))`);
    const [then, now] = [monthOf(NOON), monthOf(Date.now())];
    await store.apply([reserveCommand("old", { at: NOON }), reserveCommand("older", { at: NOON })]);
    await store.apply([settleCommand("old", { at: NOON + 1_000 })]);
    await store.apply([settleCommand("older", { at: NOON + 1_000 })]);
    // A row that a later row refers to keeps its month.
    const late = { attempt: "older", costNano: -2n, reason: "refund", actor: "x" };
    await store.apply([{ do: "adjust", at: NOON + 40 * DAY, ...late }]);
    await store.maintenance!.prune!(NOON + DAY);
    expect(await lies("older")).toEqual([`ledger_row_${then}`]);
    expect(await months("ledger_row")).toEqual([then, now, after(now)]);
    const before = await store.sumEntries({ by: ["key"] });
    await store.maintenance!.prune!(NOON + 50 * DAY);
    expect(await months("ledger_row")).toEqual([now, after(now)]);
    expect(await months("batch")).toContain(now);
    expect(await store.sumEntries({ by: ["key"] })).toEqual(before);
    expect(await store.verify!()).toEqual([]);
  });
});
