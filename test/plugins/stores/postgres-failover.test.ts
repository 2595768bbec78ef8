// A primary that dies, and a replica that had not heard all that it acknowledged: what is missing is told again, by those that live and from the disks
// of those that do not; or another gateway says what is gone.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { faultOf } from "../../../src/model/error.ts";
import type { StoreNews } from "../../../src/plugin/instance.ts";
import type { Store, StoreCommand } from "../../../src/plugin/store.ts";
import { reserve, settle } from "../../../src/testing/store.ts";
import { postgresStore, type PostgresStore } from "../../../plugins/stores/postgres/store.ts";
import { hasPostgres, startPostgres, startReplica, type Postgres } from "../../kit/postgres.ts";
import { tcpProxy } from "../../kit/tcp-proxy.ts";
import { until } from "../../kit/waits.ts";
import { settings } from "./made-postgres.ts";

const budget = {
  scope: "key:alice",
  unit: "nano_usd",
  max: 1_000_000n,
  per: "total",
  take: 1_000n,
} as const;
const take = (attempt: string): StoreCommand =>
  reserve(attempt, { at: Date.now(), claims: [budget] });
const pay = (attempt: string): StoreCommand => settle(attempt, { at: Date.now(), costNano: 900n });
const alive = (): StoreCommand => ({ do: "alive", at: Date.now() });
/** Apart by so much, its lease is over. */
const LEASE_MS = 3_000;

describe.skipIf(!hasPostgres())("a failover that lost its tail", { timeout: 120_000 }, () => {
  it.each([
    { what: "of a gateway that ended is told from its disk", kept: true },
    { what: "of a gateway whose disk is gone too is named", kept: false },
  ])("what is missing of those that live is told again; $what", async ({ kept }) => {
    await using primary = await startPostgres();
    const url = await primary.database();
    await using road = await tcpProxy(primary);
    const folders = await Promise.all(
      [1, 2].map(() => mkdtemp(join(tmpdir(), "tollgate-failover-"))),
    );
    const news: StoreNews[] = [];
    const stores: PostgresStore[] = [];
    const node = async (instance: string, folder: string): Promise<PostgresStore> => {
      const address = settings(road.through(url)).address;
      const store = postgresStore(
        settings(url, {
          address,
          owner: address,
          reports: address,
          clock: "database",
          leaseMs: LEASE_MS,
          folder: () => folder,
        }),
      );
      stores.push(store);
      await store.open({ instance }, (one) => void news.push(one));
      return store;
    };
    const one = await node("one", folders[0]!);
    const two = await node("two", folders[1]!);
    await one.apply([take("a")]);
    await two.apply([take("b")]);
    await using replica = await startReplica(primary);
    const known = async () =>
      Number(await primary.sql(replica.at(url), "SELECT count(*) FROM tollgate.entry"));
    await until(async () => (await known()) === 2);
    await primary.deafen();
    // Acknowledged, and nowhere but on the primary and with the gateways that were told.
    await one.apply([pay("a"), take("c")]);
    await two.apply([pay("b"), take("d")]);
    await two.apply([take("e"), pay("d")]);
    // Each has seen how far the other had come.
    await one.apply([alive()]);
    await primary.kill();
    await two.close(false);
    stores.pop();
    await replica.promote();
    expect(await known()).toBe(2);
    road.lead(replica.port);
    await told(one, [take("f")], () =>
      one.open({ instance: "one" }, (each) => void news.push(each)),
    );
    const of = async (attempt: string) =>
      (await one.entries({ attempt })).items.map(({ kind, outcome }) =>
        kind === "settle" ? outcome : kind,
      );
    expect(await of("a")).toEqual(["reserve", "ok"]);
    expect(await of("c")).toEqual(["reserve"]);
    if (kept) {
      await node("three", folders[1]!);
      expect(news).toContainEqual({ type: "retold", instance: "two", commands: 4 });
      await one.apply([alive()]);
      expect(await of("b")).toEqual(["reserve", "ok"]);
      expect(await of("d")).toEqual(["reserve", "ok"]);
      await until(async () => {
        await one.apply([alive()]);
        return (await of("e")).includes("presumed");
      });
      const { take: _, ...limit } = budget;
      const [count] = await one.counted!([limit], Date.now());
      expect([count!.used, count!.held]).toEqual([3n * 900n + 1_000n, 2n * 1_000n]);
    } else {
      await until(async () => {
        await one.apply([alive()]);
        return news.some(({ type }) => type === "lost");
      });
      expect(news).toContainEqual({ type: "lost", instance: "two", from: 2, to: 3 });
    }
    expect(await one.verify!()).toEqual([]);
    expect(news.filter(({ type }) => type === "lost")).toHaveLength(kept ? 0 : 1);
    for (const store of stores) await store.close();
    for (const folder of folders) await rm(folder, { recursive: true, force: true });
  });

  it.each([
    { who: "a gateway that hears of it with its next batch", ends: false },
    { who: "the one that comes after such a gateway ended in good order", ends: true },
  ])("taken for dead by the new primary, $who tells what was lost", async ({ ends }) => {
    await using primary = await startPostgres();
    const url = await primary.database();
    await using road = await tcpProxy(primary);
    const folder = await mkdtemp(join(tmpdir(), "tollgate-failover-"));
    const { address } = settings(road.through(url));
    const all = { address, owner: address, reports: address, clock: "database" } as const;
    const opened = async (instance: string) => {
      const store = postgresStore(settings(url, { ...all, folder: () => folder }));
      await store.open({ instance }, () => {});
      return store;
    };
    let one = await opened("one");
    await one.apply([take("a")]);
    await using replica = await startReplica(primary);
    const known = async () =>
      Number(await primary.sql(replica.at(url), "SELECT count(*) FROM tollgate.entry"));
    await until(async () => (await known()) === 1);
    await primary.deafen();
    await one.apply([pay("a"), take("b")]);
    await primary.kill();
    await replica.promote();
    await primary.sql(replica.at(url), "UPDATE tollgate.node SET state = 'dead'");
    road.lead(replica.port);
    if (ends) {
      // Its beat finds the new one. No batch has asked of it what it knows.
      await until(async () => (await connectedTo(primary, replica.at(url))) > 0);
      await one.close();
      one = await opened("two");
    } else {
      await told(one, [take("c")], () => one.open({ instance: "one" }, () => {}));
    }
    const of = async (attempt: string) =>
      (await one.entries({ attempt })).items.map(({ kind, outcome }) =>
        kind === "settle" ? outcome : kind,
      );
    expect([
      ["reserve", "ok"],
      ["reserve", "presumed", "adjust"],
    ]).toContainEqual(await of("a"));
    expect((await of("b"))[0]).toBe("reserve");
    expect(await one.verify!()).toEqual([]);
    await one.close();
    await rm(folder, { recursive: true, force: true });
  });

  it.each([
    { who: "a gateway that the new primary takes for dead", ends: undefined },
    { who: "the one that comes after such a gateway was killed", ends: false },
    { who: "the one that comes after such a gateway ended in good order", ends: true },
  ])(
    "$who tells what was lost, and what ended meanwhile, under another number",
    async ({ ends }) => {
      await using primary = await startPostgres();
      const url = await primary.database();
      await using road = await tcpProxy(primary);
      const folder = await mkdtemp(join(tmpdir(), "tollgate-failover-"));
      const news: StoreNews[] = [];
      const { address } = settings(road.through(url));
      const all = { address, owner: address, reports: address, clock: "database" } as const;
      const opened = async (instance: string) => {
        const store = postgresStore(settings(url, { ...all, folder: () => folder }));
        await store.open({ instance }, (each) => void news.push(each));
        return store;
      };
      let one = await opened("one");
      await one.apply([take("a"), take("b")]);
      await using replica = await startReplica(primary);
      const known = async () =>
        Number(await primary.sql(replica.at(url), "SELECT count(*) FROM tollgate.entry"));
      await until(async () => (await known()) === 2);
      await primary.deafen();
      await one.apply([pay("a"), take("c")]);
      await primary.kill();
      await replica.promote();
      await primary.sql(replica.at(url), "UPDATE tollgate.node SET state = 'dead'");
      // Apart by now: this goes to its own disk.
      await until(() =>
        one.apply([pay("b")]).then(
          () => true,
          () => false,
        ),
      );
      road.lead(replica.port);
      if (ends) {
        await one.close(false);
        one = await opened("two");
      }
      await until(() =>
        one.apply([take("d")]).then(
          () => true,
          () => false,
        ),
      );
      const of = async (attempt: string) =>
        (await one.entries({ attempt })).items.map(({ kind, outcome }) =>
          kind === "settle" ? outcome : kind,
        );
      // Its own calls are presumed before it tells how they ended, or they are not.
      for (const ended of ["a", "b"])
        expect([
          ["reserve", "ok"],
          ["reserve", "presumed", "adjust"],
        ]).toContainEqual(await of(ended));
      expect((await of("c"))[0]).toBe("reserve");
      expect(await one.verify!()).toEqual([]);
      await one.close();
      await rm(folder, { recursive: true, force: true });
    },
  );
});

const connectedTo = async (server: Postgres, url: string): Promise<number> =>
  Number(
    await server.sql(
      url,
      "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tollgate%' AND backend_type = 'client backend'",
    ),
  );

/** As the host does: opened again where it was taken for dead, and told again while nothing answers. */
async function told(
  store: Store,
  batch: readonly StoreCommand[],
  open: () => Promise<unknown>,
): Promise<void> {
  await until(async () => {
    try {
      await store.apply(batch);
      return true;
    } catch (error) {
      if (faultOf(error)?.code === "fenced") await open();
      return false;
    }
  });
}
