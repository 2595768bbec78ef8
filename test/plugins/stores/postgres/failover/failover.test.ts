// A dying primary, and a replica that lacks acknowledged rows: live gateways send the missing ones
// again, and the disks of dead ones are replayed. Otherwise another gateway reports the loss.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { getFault } from "../../../../../src/model/error.ts";
import type { StoreEvent } from "../../../../../src/plugin/store/store-instance.ts";
import type { Store, StoreCommand } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import {
  createPostgresStore,
  type PostgresSettings,
  type PostgresStore,
} from "../../../../../plugins/stores/postgres/store.ts";
import {
  hasPostgres,
  startPostgres,
  startReplica,
  type Postgres,
} from "../../../../kit/database/postgres.ts";
import { startTcpProxy } from "../../../../kit/database/tcp-proxy.ts";
import { until } from "../../../../kit/wait.ts";
import { settings } from "../../postgres-under-test.ts";

const budget = {
  scope: "key:alice",
  unit: "nano_usd",
  max: 1_000_000n,
  per: "total",
  take: 1_000n,
} as const;
const take = (attempt: string): StoreCommand =>
  reserveCommand(attempt, { at: Date.now(), claims: [budget] });
const pay = (attempt: string): StoreCommand =>
  settleCommand(attempt, { at: Date.now(), costNano: 900n });
const alive = (): StoreCommand => ({ do: "heartbeat", at: Date.now() });
/** After this long, its lease has expired. */
const LEASE_MS = 3_000;

/** A primary, the link of the gateways to it, and the contents of their disks. */
async function scene() {
  await using made = new AsyncDisposableStack();
  const primary = made.use(await startPostgres());
  const url = await primary.database();
  const road = made.use(await startTcpProxy(primary));
  const { address } = settings(road.through(url));
  const all = {
    address,
    ownerAddress: address,
    reportAddress: address,
    clock: "database",
  } as const;
  const kept = made.move();
  const news: StoreEvent[] = [];
  const heard = (one: StoreEvent) => void news.push(one);
  const folder = async () => {
    const its = await mkdtemp(join(tmpdir(), "tollgate-failover-"));
    kept.defer(() => rm(its, { recursive: true, force: true }));
    return its;
  };
  let replica: Postgres | undefined;
  const known = async () =>
    Number(await primary.sql(replica!.at(url), "SELECT count(*) FROM tollgate.entry"));
  return {
    primary,
    news,
    heard,
    folder,
    async opened(
      instance: string,
      its: string,
      more: Partial<PostgresSettings> = {},
    ): Promise<PostgresStore> {
      const store = createPostgresStore(settings(url, { ...all, ...more, spoolDir: () => its }));
      await store.open({ instance }, heard);
      return store;
    },
    /** It has this many rows, and receives no more. */
    async replicaOf(rows: number): Promise<void> {
      replica = kept.use(await startReplica(primary));
      await until(async () => (await known()) === rows);
      await primary.deafen();
    },
    known,
    /** The replica is the primary. Gateways do not know its address yet. */
    async promoted(): Promise<void> {
      await primary.kill();
      await replica!.promote();
    },
    lead: () => road.lead(replica!.port),
    /** Of the new primary. */
    sql: (text: string) => primary.sql(replica!.at(url), text),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Its view of a call: types of rows, and the outcome of a settle. */
const saidOf = async (store: Store, attempt: string): Promise<readonly string[]> =>
  (await store.listEntries({ attempt }, { limit: 100 })).items.map(({ kind, outcome }) =>
    kind === "settle" ? outcome : kind,
  );

/** Whether its own calls are recovered before it reports how they ended. */
const ENDED = [
  ["reserve", "ok"],
  ["reserve", "recovered", "adjust"],
];
const takes = (store: Store, batch: readonly StoreCommand[]): Promise<boolean> =>
  store.apply(batch).then(
    () => true,
    () => false,
  );

const CONNECTED =
  "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tollgate%' AND backend_type = 'client backend'";

describe.skipIf(!hasPostgres())("a failover that lost recent rows", { timeout: 120_000 }, () => {
  it.each([
    { what: "of a gateway that ended is told from its disk", kept: true },
    { what: "of a gateway whose disk is gone too is named", kept: false },
  ])("live gateways replay the missing rows; $what", async ({ kept }) => {
    await using at = await scene();
    const { news } = at;
    const folder = await at.folder();
    const lease = { leaseMs: LEASE_MS };
    const one = await at.opened("one", await at.folder(), lease);
    const two = await at.opened("two", folder, lease);
    await one.apply([take("a")]);
    await two.apply([take("b")]);
    await at.replicaOf(2);
    // Acknowledged, and only on the primary and at the gateways that sent them.
    await one.apply([pay("a"), take("c")]);
    await two.apply([pay("b"), take("d")]);
    await two.apply([take("e"), pay("d")]);
    // Each has seen the position of the other.
    await one.apply([alive()]);
    await at.primary.kill();
    await two.close(false);
    await at.promoted();
    expect(await at.known()).toBe(2);
    at.lead();
    await told(one, [take("f")], () => one.open({ instance: "one" }, at.heard));
    expect(await saidOf(one, "a")).toEqual(["reserve", "ok"]);
    expect(await saidOf(one, "c")).toEqual(["reserve"]);
    if (kept) {
      const three = await at.opened("three", folder, lease);
      expect(news).toContainEqual({ type: "spool_replayed", instance: "two", commands: 4 });
      await one.apply([alive()]);
      expect(await saidOf(one, "b")).toEqual(["reserve", "ok"]);
      expect(await saidOf(one, "d")).toEqual(["reserve", "ok"]);
      await until(async () => {
        await one.apply([alive()]);
        return (await saidOf(one, "e")).includes("recovered");
      });
      const { take: _, ...limit } = budget;
      const [count] = await one.readLimits!([limit], Date.now());
      expect([count!.used, count!.reserved]).toEqual([3n * 900n + 1_000n, 2n * 1_000n]);
      await three.close();
    } else {
      await until(async () => {
        await one.apply([alive()]);
        return news.some(({ type }) => type === "rows_lost");
      });
      expect(news).toContainEqual({ type: "rows_lost", instance: "two", from: 2, to: 3 });
    }
    expect(await one.verify!()).toEqual([]);
    expect(news.filter(({ type }) => type === "rows_lost")).toHaveLength(kept ? 0 : 1);
    await one.close();
  });

  it.each([
    { who: "a gateway that hears of it with its next batch", ends: false },
    { who: "the one that comes after such a gateway ended in good order", ends: true },
  ])("after the new primary expired its lease, $who replays the lost rows", async ({ ends }) => {
    await using at = await scene();
    const folder = await at.folder();
    let one = await at.opened("one", folder);
    await one.apply([take("a")]);
    await at.replicaOf(1);
    await one.apply([pay("a"), take("b")]);
    await at.promoted();
    await at.sql("UPDATE tollgate.node SET state = 'dead'");
    at.lead();
    if (ends) {
      // Its heartbeat finds the new one. No batch has compared its state.
      await until(async () => Number(await at.sql(CONNECTED)) > 0);
      await one.close();
      one = await at.opened("two", folder);
    } else {
      await told(one, [take("c")], () => one.open({ instance: "one" }, at.heard));
    }
    expect(ENDED).toContainEqual(await saidOf(one, "a"));
    expect((await saidOf(one, "b"))[0]).toBe("reserve");
    expect(await one.verify!()).toEqual([]);
    await one.close();
  });

  it.each([
    { who: "a gateway that the new primary takes for dead", ends: undefined },
    { who: "the one that comes after such a gateway was killed", ends: false },
    { who: "the one that comes after such a gateway ended in good order", ends: true },
  ])("$who replays the lost rows and ended calls under another number", async ({ ends }) => {
    await using at = await scene();
    const folder = await at.folder();
    let one = await at.opened("one", folder);
    await one.apply([take("a"), take("b")]);
    await at.replicaOf(2);
    await one.apply([pay("a"), take("c")]);
    await at.promoted();
    await at.sql("UPDATE tollgate.node SET state = 'dead'");
    // Offline by now: this goes to its own disk.
    await until(() => takes(one, [pay("b")]));
    at.lead();
    if (ends !== undefined) {
      await one.close(ends);
      one = await at.opened("two", folder);
    }
    await until(() => takes(one, [take("d")]));
    for (const ended of ["a", "b"]) expect(ENDED).toContainEqual(await saidOf(one, ended));
    expect((await saidOf(one, "c"))[0]).toBe("reserve");
    expect(await one.verify!()).toEqual([]);
    await one.close();
  });
});

/** Like the host: reopened after its lease expired, and retried while nothing responds. */
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
      if (getFault(error)?.code === "fenced") await open();
      return false;
    }
  });
}
