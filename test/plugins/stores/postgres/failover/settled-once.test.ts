// A dead gateway's calls are settled once, although two others see them open at the same moment.
// The index that rejects a second end is disabled for this test: it is the last protection, and
// would hide the first one.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reserveCommand } from "../../../../../src/testing/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { until } from "../../../../kit/wait.ts";
import { askAt, makePostgres } from "../../postgres-under-test.ts";

const CALLS = 5;
const HOLD = 1_000n;

describe.skipIf(!hasPostgres())("two gateways and the calls of a dead one", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  it("settle each call once, although both see them open at the same time", async () => {
    const { store, openAnother, expireLease, dispose } = await makePostgres(url, {
      clock: "database",
    });
    const [left, right] = [await openAnother(), await openAnother()];
    await left.open({ instance: "left" });
    await right.open({ instance: "right" });
    await using by = askAt(url);
    await using holder = askAt(url);
    await by.ask("DROP INDEX tollgate.ledger_row_once");
    const claims = [
      { scope: "key:k", unit: "nano_usd", max: 1_000_000n, per: "total", take: HOLD },
    ] as const;
    await store.open({ instance: "dead" });
    const at = Date.now();
    await store.apply(
      Array.from({ length: CALLS }, (_, i) => reserveCommand(`call.${i}`, { at, claims })),
    );
    await holder.ask("BEGIN");
    await holder.ask("SELECT 1 FROM tollgate.meter FOR UPDATE");
    await expireLease("dead");
    const both = [left, right].map((one) => one.apply([{ do: "heartbeat", at: Date.now() }]));
    await until(async () => {
      const [row] = await by.ask(
        "SELECT count(*) AS many FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      return row!["many"] === "2";
    });
    await holder.ask("COMMIT");
    await Promise.all(both);
    const ends = await by.ask(
      "SELECT attempt, count(*) AS many, sum(cost) AS cost FROM tollgate.entry WHERE kind = 1 GROUP BY 1",
    );
    expect(ends.map((row) => row["many"])).toEqual(Array.from({ length: CALLS }, () => "1"));
    const [meter] = await by.ask("SELECT level, reserved FROM tollgate.meter");
    const cost = ends.reduce((sum, row) => sum + BigInt(row["cost"] ?? 0), 0n);
    expect([meter!["level"], meter!["reserved"]]).toEqual([`${cost}`, "0"]);
    await dispose();
  });
});
