// Connections that break at every moment, and a database that was set back: acknowledged rows exist
// once.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getFault } from "../../../../src/model/error.ts";
import type { StoreEvent } from "../../../../src/plugin/store/store-instance.ts";
import type { StoreCommand, CommandResult } from "../../../../src/plugin/store/store.ts";
import { PipelinedConnection } from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { connectionConfig } from "../../../../plugins/stores/postgres/connection/connection-config.ts";
import { createWriter } from "../../../../plugins/stores/postgres/writer.ts";
import { createSeededRandom } from "../../../../src/testing/random.ts";
import type { PostgresStore } from "../../../../plugins/stores/postgres/store.ts";
import { reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../kit/database/postgres.ts";
import { formatMemberScope } from "../../../../src/plugin/store/member-scope.ts";
import { breakingAtCommit, brittle } from "./breaking-connection.ts";
import { copyOf } from "./rolled-back-database.ts";
import { askAt, makePostgres, settings } from "../postgres-under-test.ts";

const claim = { scope: "key:k", unit: "nano_usd", max: 10n ** 9n, per: "total" } as const;
const rate = { scope: "key:k", unit: "requests", max: 1_000_000, per: "hour" } as const;

describe.skipIf(!hasPostgres())("the postgres store", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  it("writes each batch once, although its connection broke before and after statements", async () => {
    const made = await makePostgres(url, { clock: "database" });
    await made.store.open({ instance: "reader" });
    const next = createSeededRandom(5);
    const { address } = settings(url);
    const line = brittle(
      new PipelinedConnection(() => connectionConfig(address, { statementMs: 2_000 })),
      next,
    );
    const writer = createWriter(line, {
      ...settings(url),
      clock: "database",
      usesPreparedStatements: true,
    });
    await writer.open({ instance: "writer" }, () => {});
    line.calm(false);
    const tell = async (batch: readonly StoreCommand[]): Promise<readonly CommandResult[]> => {
      for (;;)
        try {
          return await writer.apply(batch);
        } catch (error) {
          // Like the host: a rejected batch is sent again.
          if (getFault(error)?.kind === "invalid") throw error;
        }
    };
    let spent = 0n;
    const open: string[] = [];
    for (let i = 0; i < 30; i++) {
      const batch: StoreCommand[] = Array.from({ length: 1 + Math.floor(next() * 5) }, (_, n) =>
        reserveCommand(`a${i}.${n}`, {
          at: Date.now(),
          claims: [
            { ...claim, take: 1_000n },
            { ...rate, take: 1n },
          ],
        }),
      );
      const begun = batch.flatMap((c) => ("attempt" in c ? [c.attempt] : []));
      while (open.length > 3) {
        const costNano = BigInt(Math.floor(next() * 900));
        spent += costNano;
        batch.push(settleCommand(open.shift()!, { at: Date.now(), costNano }));
      }
      open.push(...begun);
      // Sometimes the same call twice, or a call that starts and ends immediately: exact mode.
      if (i % 7 === 0) batch.push(batch[0]!);
      await tell(batch);
    }
    for (const attempt of open)
      await tell([settleCommand(attempt, { at: Date.now(), costNano: 1n })]);
    spent += BigInt(open.length);
    const { take: _, ...limit } = { ...claim, take: 0n };
    const [count] = await made.store.readLimits!([limit], Date.now());
    expect([count!.used, count!.reserved]).toEqual([spent, 0n]);
    const [total] = await made.store.sumEntries({ by: [] });
    expect(total!.costNano).toBe(spent);
    expect(await made.store.verify!()).toEqual([]);
    await writer.close(true);
    await made.dispose();
  });

  it.each(["before", "after"] as const)(
    "raises a member once if the connection breaks %s its commit",
    async (when) => {
      const made = await makePostgres(url, { clock: "database" });
      await made.store.open({ instance: "reader" });
      const { address } = settings(url);
      const line = breakingAtCommit(
        new PipelinedConnection(() => connectionConfig(address, { statementMs: 2_000 })),
        when,
      );
      const writer = createWriter(line, {
        ...settings(url),
        clock: "database",
        usesPreparedStatements: true,
      });
      await writer.open({ instance: "writer" }, () => {});
      const limit = {
        scope: formatMemberScope("session", 3_600_000, when),
        unit: "nano_usd",
        max: 10_000n,
        per: "total",
        maxMembers: 10,
      } as const;
      const spend = async (store: Pick<typeof writer, "apply">, attempt: string) => {
        const at = Date.now();
        await store.apply([reserveCommand(attempt, { at, claims: [{ ...limit, take: 4_000n }] })]);
        await store.apply([settleCommand(attempt, { at, costNano: 4_000n })]);
      };
      const used = async () => (await made.store.readLimits!([limit], Date.now()))[0]!.used;
      await spend(writer, `${when} 1`);
      line.arm();
      const raise: StoreCommand = {
        do: "member",
        at: Date.now(),
        limits: [limit],
        change: { type: "raise", id: "c1", amount: 3_000n, from: 4_000n },
      };
      expect(await writer.apply([raise])).toEqual([{ ok: true }]);
      expect(await used()).toBe(1_000n);
      // The host sends the command again, through another gateway too, after more was used.
      await spend(made.store, `${when} 2`);
      expect(await writer.apply([raise])).toEqual([{ ok: true }]);
      expect(await made.store.apply([raise])).toEqual([{ ok: true }]);
      expect(await used()).toBe(5_000n);
      expect(await made.store.verify!()).toEqual([]);
      await writer.close(true);
      await made.dispose();
    },
  );

  it.each([
    ["not whole", (n: number) => n],
    ["not at all", () => 0],
  ])("replays rows to a database that was set back and knows %s", async (_what, _of) => {
    const made = await makePostgres(url, { clock: "database" });
    const { store } = made;
    await using by = askAt(url);
    const { save, setBack } = copyOf(by.ask);
    const news: StoreEvent[] = [];
    if (_what === "not at all") await save().catch(() => by.ask("ROLLBACK"));
    await store.open({ instance: "one" }, (one) => void news.push(one));
    if (_what === "not at all") await save();
    const at = Date.now();
    if (_what === "not at all") await by.ask("DELETE FROM public.node_then");
    const begin = (name: string) =>
      reserveCommand(name, { at, claims: [{ ...claim, take: 1_000n }] });
    await store.apply([begin("a"), begin("b"), begin("c")]);
    await store.apply([settleCommand("a", { at, costNano: 10n })]);
    if (_what === "not whole") await save();
    await store.apply([begin("d"), settleCommand("b", { at, costNano: 20n })]);
    await store.apply([begin("e")]);
    await store.apply([
      settleCommand("d", { at, costNano: 30n }),
      { do: "adjust", at, attempt: "a", costNano: 1n, reason: "r", actor: "x" },
    ]);
    await setBack();
    const end = [
      settleCommand("c", { at, costNano: 40n }),
      settleCommand("e", { at, costNano: 50n }),
    ];
    // Fencing is handled by the host.
    await store.apply(end).catch(async () => {
      await store.open({ instance: "one" }, (one) => void news.push(one));
      await store.apply(end);
    });
    const { items } = await store.listEntries({}, { limit: 100 });
    const of = (kind: string) =>
      items
        .filter((row) => row.kind === kind)
        .map((row) => row.attempt)
        .sort();
    expect(of("reserve")).toEqual(["a", "b", "c", "d", "e"]);
    expect(of("settle")).toEqual(["a", "b", "c", "d", "e"]);
    expect(of("adjust")).toEqual(["a"]);
    const [count] = await store.readLimits!([claim], at);
    expect([count!.used, count!.reserved]).toEqual([151n, 0n]);
    expect(news.filter(({ type }) => type === "rows_lost")).toEqual([]);
    expect(await store.verify!()).toEqual([]);
    await made.dispose();
  });

  // Its write-ahead log is written every ten seconds, unless a commit requires it.
  const LATE = ["wal_writer_delay=10000ms", "wal_writer_flush_after=1GB"];
  const begin = (name: string): StoreCommand =>
    reserveCommand(name, { at: Date.now(), claims: [{ ...claim, take: 1_000n }] });

  it.each([
    ["flushed", "plain", [begin("a")], 1],
    ["synced", "plain", [begin("a")], 1],
    // The same call twice uses exact mode.
    ["flushed", "exact", [begin("a"), begin("a")], 1],
    // Control: the test can fail.
    ["relaxed", "plain", [begin("a")], 0],
  ] as const)(
    "%s, in %s mode: acknowledged rows survive a killed database, without a replay",
    async (durability, _way, batch, found) => {
      await using late = await startPostgres({ settings: LATE });
      const at = await late.database();
      const made = await makePostgres(at, { clock: "database", durability });
      await made.store.open({ instance: "one" });
      await made.store.apply(batch);
      await late.kill();
      await (made.store as PostgresStore).close(false);
      await late.start();
      const rows = "SELECT count(*) FROM tollgate.entry";
      expect(Number(await late.sql(at, rows))).toBe(found);
    },
  );
});
