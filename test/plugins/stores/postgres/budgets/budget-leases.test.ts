// Budgets that many gateways share are leased: never exceeded, spent completely, and no lease stays
// with dead gateways.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { StoreEvent } from "../../../../../src/plugin/store/store-instance.ts";
import type { StoreCommand, CommandResult } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import {
  createPostgresStore,
  type PostgresStore,
} from "../../../../../plugins/stores/postgres/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { startTcpProxy, type TcpProxy } from "../../../../kit/database/tcp-proxy.ts";
import { until } from "../../../../kit/wait.ts";
import { createChance } from "../../../../rig/rig.ts";
import { askAt, makePostgres, settings } from "../../postgres-under-test.ts";

const TAKE = 1_000n;
const budget = (max: bigint) =>
  ({ scope: "account:all", unit: "nano_usd", max, per: "total", take: TAKE }) as const;

const take = (attempt: string, max: bigint): StoreCommand =>
  reserveCommand(attempt, { at: Date.now(), claims: [budget(max)] });
const pay = (attempt: string, costNano = TAKE): StoreCommand =>
  settleCommand(attempt, { at: Date.now(), costNano });

/**
 * Like the host: a batch that failed on a broken connection, or on a busy machine, is sent again.
 */
async function again<T>(work: () => Promise<T>, times = 20): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (times === 0) throw error;
    return again(work, times - 1);
  }
}

describe.skipIf(!hasPostgres())("a hot budget", () => {
  let server: Postgres;
  let url: string;
  let road: TcpProxy;
  let made: Awaited<ReturnType<typeof makePostgres>>;
  let open: PostgresStore[] = [];
  /** A reached threshold that no result reported. */
  let heard: number[];
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    road = await startTcpProxy(server);
    heard = [];
    made = await makePostgres(url, { clock: "database" });
    await made.store.open({ instance: "judge" }, hear);
  });
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close(false);
    await made.dispose();
    await road[Symbol.asyncDispose]();
  });

  async function node(instance: string, slicesFrom = 2): Promise<PostgresStore> {
    const address = settings(road.through(url)).address;
    const of = {
      address,
      ownerAddress: address,
      reportAddress: address,
      clock: "database",
    } as const;
    const store = createPostgresStore(settings(url, { ...of, leaseThreshold: slicesFrom }));
    open.push(store);
    await again(() => store.open({ instance }, hear));
    return store;
  }
  const hear = (news: StoreEvent) => {
    if (news.type === "thresholds_reached")
      heard.push(...news.crossings.map(({ percent }) => percent));
  };
  async function asked(text: string) {
    await using by = askAt(url);
    return await by.ask(text);
  }
  const slices = async () =>
    (await asked("SELECT node, amount, spent FROM tollgate.budget_lease ORDER BY node")).map(
      ({ node: of, amount, spent }) => [of!, BigInt(amount!), BigInt(spent!)] as const,
    );
  const counted = async (max: bigint) => {
    const { take: _, ...limit } = budget(max);
    const [count] = await made.store.readLimits!([limit], Date.now());
    return [count!.used, count!.reserved] as const;
  };
  const meter = async () => {
    const [row] = await asked("SELECT level, reserved FROM tollgate.meter");
    return { level: BigInt(row!["level"]!), held: BigInt(row!["reserved"]!) };
  };
  /** Both have called so often recently that their budget is leased. */
  async function heated(
    stores: readonly PostgresStore[],
    max: bigint,
    used = TAKE,
  ): Promise<number> {
    let n = 0;
    await until(async () => {
      for (const store of stores)
        for (let i = 0; i < 6; i++) {
          const attempt = `h${n++}`;
          expect((await store.apply([take(attempt, max)]))[0]!.ok).toBe(true);
          await store.apply([pay(attempt, used)]);
        }
      return (await slices()).length === stores.length;
    });
    // They have received this information too.
    for (const store of stores) await store.apply([{ do: "heartbeat", at: Date.now() }]);
    return n;
  }

  /**
   * Until its lease has spent what the budget's row does not know yet. Returns the number of calls.
   */
  async function spending(store: PostgresStore, name: string, max: bigint): Promise<bigint> {
    let n = 0n;
    await until(async () => {
      const attempt = `u${n++}`;
      await store.apply([take(attempt, max)]);
      await store.apply([pay(attempt)]);
      return (await slices()).some(([of, , spent]) => of === name && spent > 0n);
    });
    return n;
  }

  it("is leased: calls do not touch its row, and spending is recorded with the next heartbeat", async () => {
    const max = 100_000_000n;
    const [one, two] = [await node("one"), await node("two")];
    const n = BigInt(await heated([one, two], max));
    let verdicts: readonly CommandResult[] = [];
    let times = 0n;
    // Between two heartbeats nothing is written there. A heartbeat may occur in between.
    await until(async () => {
      const before = await meter();
      const name = `a${times++}`;
      verdicts = await one.apply([1, 2, 3].map((i) => take(`${name}.${i}`, max)));
      expect(verdicts.every(({ ok }) => ok)).toBe(true);
      await one.apply([pay(`${name}.1`, 700n), pay(`${name}.2`, 0n), pay(`${name}.3`, 0n)]);
      const after = await meter();
      return after.level === before.level && after.held === before.held;
    });
    const used = n * TAKE + times * 700n;
    expect((await counted(max))[0]).toBe(used);
    await until(async () => (await meter()).level === used);
    expect(await made.store.verify!()).toEqual([]);
    const limits = (verdicts[0] as Extract<CommandResult, { ok: true }>).limits!;
    expect(limits[0]!.remaining).toBeGreaterThan(0n);
    const more = await spending(one, "one", max);
    for (const store of open.splice(0)) await store.close();
    expect(await slices()).toEqual([]);
    expect(await counted(max)).toEqual([used + more * TAKE, 0n]);
  });

  it("is exact in its row with few gateways, without leases", async () => {
    const stores = [await node("one", 8), await node("two", 8)];
    let n = 0;
    await until(async () => {
      for (const store of stores)
        for (let i = 0; i < 10; i++) await store.apply([take(`f${n++}`, 10n ** 9n)]);
      // Both have checked which gateways use it.
      return (await asked("SELECT 1 FROM tollgate.lease_use")).length === 2;
    });
    expect(await slices()).toEqual([]);
  });

  it("gets back the lease of a dead gateway after its expiry, and recovers its open calls", async () => {
    const max = 100_000_000n;
    const [one, two] = [await node("one"), await node("two")];
    const n = BigInt(await heated([one, two], max));
    await one.apply([take("left", max), take("paid", max)]);
    await one.apply([pay("paid", 400n)]);
    const more = await spending(one, "one", max);
    open = open.filter((store) => store !== one);
    await one.close(false);
    await made.expireLease("one");
    await made.store.apply([{ do: "heartbeat", at: Date.now() }]);
    expect((await slices()).map(([of]) => of)).not.toContain("one");
    expect((await counted(max))[0]).toBe((n + 1n + more) * TAKE + 400n);
    expect(await made.store.verify!()).toEqual([]);
  });

  it("a fenced gateway spends nothing of a returned lease", async () => {
    const max = 100_000_000n;
    const [one, two] = [await node("one"), await node("two")];
    await heated([one, two], max);
    await made.expireLease("one");
    await made.store.apply([{ do: "heartbeat", at: Date.now() }]);
    await expect(one.apply([take("late", max)])).rejects.toThrow("fenced");
    await one.open({ instance: "one" });
    expect((await one.apply([take("late", max)]))[0]!.ok).toBe(true);
    await one.apply([pay("late")]);
    expect(await made.store.verify!()).toEqual([]);
  });

  it("a lease that is smaller than its gateway assumes spends only what exists", async () => {
    const max = 100_000_000n;
    const [one, two] = [await node("one"), await node("two")];
    await heated([one, two], max);
    await asked(
      "WITH less AS (UPDATE tollgate.budget_lease i SET amount = 0 FROM tollgate.budget_lease was WHERE was.meter = i.meter AND was.node = i.node RETURNING i.meter, was.amount) UPDATE tollgate.meter m SET reserved = m.reserved - (SELECT sum(amount) FROM less)",
    );
    for (const store of [one, two]) {
      expect((await store.apply([take(`less-${store === one}`, max)]))[0]!.ok).toBe(true);
      await store.apply([pay(`less-${store === one}`)]);
    }
    expect(await made.store.verify!()).toEqual([]);
  });

  it("the remaining amount is reported to the nano-dollar, call by call, while leases are spent", async () => {
    const max = 100_000_000n;
    const one = await node("one", 1);
    let used = BigInt(await heated([one], max)) * TAKE;
    for (let i = 0; i < 20; i++) {
      const [verdict] = await one.apply([take(`l${i}`, max)]);
      const { limits } = verdict as Extract<CommandResult, { ok: true }>;
      expect(limits![0]!.remaining).toBe(max - used - TAKE);
      await one.apply([pay(`l${i}`, 300n)]);
      used += 300n;
    }
  });

  it("a lowered limit applies immediately: leases of the higher one are not spent", async () => {
    const max = 100_000_000n;
    const [one, two] = [await node("one"), await node("two")];
    const n = BigInt(await heated([one, two], max));
    const low = n * TAKE;
    expect((await one.apply([take("over", low)]))[0]!.ok).toBe(false);
    await until(async () => {
      await two.apply([take("over-too", low)]);
      return (await slices()).length === 0;
    });
    expect(await counted(max)).toEqual([n * TAKE, 0n]);
  });

  it("a lease is at most a gateway's part of half of the rest, whatever it requests; near the end there is none", async () => {
    const max = 1_000n * TAKE;
    await made.store.apply([take("held", max)]);
    const [row] = await asked("SELECT id FROM tollgate.meter");
    const granted = async (most: bigint) => {
      const rows = await asked(
        `SELECT amount FROM tollgate.take_lease_1('one', false, 0, ARRAY['${row!["id"]}'], ARRAY[${most}], ARRAY[1e15::numeric], ARRAY[${TAKE}])`,
      );
      return BigInt(rows[0]?.["amount"] ?? 0);
    };
    // With one live gateway: half of 999 calls, and none of the last four.
    expect(await granted(4n * TAKE)).toBe(0n);
    expect(await granted(max)).toBe((999n * TAKE) / 2n);
    const { level, held } = await meter();
    expect(level + held).toBe(TAKE + (999n * TAKE) / 2n);
  });

  it("a threshold is reported once, by one gateway of the fleet, when it is reached", async () => {
    const max = 300_000n;
    const [one, two] = [await node("one"), await node("two")];
    const stores = [one, two];
    let n = 0;
    await until(async () => {
      for (const store of stores)
        for (let i = 0; i < 4; i++) {
          const [verdict] = await store.apply([take(`c${n}`, max)]);
          if (!verdict!.ok) continue;
          const [paid] = await store.apply([pay(`c${n++}`)]);
          if (paid!.ok) heard.push(...(paid!.thresholds ?? []).map(({ percent }) => percent));
        }
      const { level, held } = await meter();
      expect(level + held).toBeLessThanOrEqual(max);
      return n === 300;
    });
    await until(() => heard.includes(100));
    expect(heard).toEqual([50, 80, 95, 100]);
    expect(await counted(max)).toEqual([max, 0n]);
  });

  it("thresholds reached by calls of a dead gateway are reported by the gateway that recovers them", async () => {
    const one = await node("one");
    await one.apply([take("left", TAKE)]);
    open = open.filter((store) => store !== one);
    await one.close(false);
    await made.expireLease("one");
    await made.store.apply([{ do: "heartbeat", at: Date.now() }]);
    expect(heard).toEqual([50, 80, 95, 100]);
  });

  it("thresholds reached through a returned lease are reported, of a stopped and of a dead gateway", async () => {
    const max = 100_000n;
    const spent = (id: string) => `INSERT INTO tollgate.budget_lease VALUES ('${id}', `;
    const one = await node("one");
    await one.apply([take("held", max)]);
    await one.apply([pay("held", 0n)]);
    const [{ id } = {}] = await asked("SELECT id FROM tollgate.meter");
    await asked(`${spent(id!)} 'one', 0, 30000, false)`);
    await asked(`${spent(id!)} 'gone', 1000, 55000, false)`);
    await asked("UPDATE tollgate.meter SET reserved = 86000");
    await made.store.apply([{ do: "heartbeat", at: Date.now() }]);
    expect(heard).toEqual([50]);
    await one.close();
    open = [];
    expect(heard).toEqual([50, 80]);
    expect(await meter()).toEqual({ level: 85_000n, held: 0n });
    // The spending of a lease that stays is added each time, and reaches a threshold once.
    const more = `SELECT level, peak FROM tollgate.take_lease_1('one', false, 0, ARRAY['${id!}'], ARRAY[100000], ARRAY[0::numeric], ARRAY[0::numeric])`;
    await asked(`${spent(id!)} 'one', 0, 11000, false)`);
    expect(await asked(more)).toEqual([{ level: "96000", peak: "85000" }]);
    expect(await asked(more)).toEqual([{ level: "96000", peak: "96000" }]);
  });

  // A rule for random scenarios: calls start and end, gateways die and return, and connections
  // break, all on one budget.
  it.each([1, 2])(
    "random scenarios: never exceeded, spent completely, nothing stuck (%i)",
    async (seed) => {
      const chanced = createChance(seed);
      const names = ["one", "two", "three"];
      const stores = new Map<string, PostgresStore>();
      for (const name of names) stores.set(name, await node(name));
      const max = 300n * TAKE;
      // The budget is complete afterwards, however many calls that takes.
      await heated([...stores.values()], max, 0n);
      const under: { name: string; attempt: string }[] = [];
      let [count, refused] = [0, 0];
      const looked = async () => {
        const [row] = await asked(
          `SELECT count(*) FILTER (WHERE level + reserved > ${max}) AS over, count(*) FILTER (WHERE reserved < 0) AS less FROM tollgate.meter`,
        );
        expect(row).toEqual({ over: "0", less: "0" });
        expect(await made.store.verify!()).toEqual([]);
      };
      for (let step = 0; step < 500 && refused < 20; step++) {
        const name = chanced.one(names);
        const store = stores.get(name)!;
        const mine = under.filter((call) => call.name === name);
        if (chanced.often(0.01)) {
          await store.close(false);
          open = open.filter((each) => each !== store);
          await made.expireLease(name);
          await again(() => made.store.apply([{ do: "heartbeat", at: Date.now() }]));
          for (const call of mine) under.splice(under.indexOf(call), 1);
          stores.set(name, await node(name));
        } else if (chanced.often(0.015)) road.reset();
        else if (chanced.often(0.02)) await looked();
        else if (mine.length > 3 || (mine.length > 0 && chanced.often(0.4))) {
          const ended = mine.slice(0, 1 + chanced.below(3));
          for (const call of ended) under.splice(under.indexOf(call), 1);
          const used = () => (chanced.often(0.2) ? 0n : chanced.often(0.3) ? 600n : TAKE);
          const settles = ended.map(({ attempt }) => pay(attempt, used()));
          await again(() => store.apply(settles));
        } else {
          const begun = Array.from({ length: 1 + chanced.below(3) }, () => `s${count++}`);
          const verdicts = await again(() =>
            store.apply(begun.map((attempt) => take(attempt, max))),
          );
          for (const [i, attempt] of begun.entries())
            if (verdicts[i]!.ok) under.push({ name, attempt });
            else refused++;
        }
      }
      await looked();
      for (const { name, attempt } of under)
        await again(() => stores.get(name)!.apply([pay(attempt)]));
      // A client that retries gets the rest of it completely.
      await until(async () => {
        const store = chanced.one([...stores.values()]);
        const attempt = `s${count++}`;
        const [verdict] = await again(() => store.apply([take(attempt, max)]));
        if (verdict!.ok) await again(() => store.apply([pay(attempt)]));
        const [used, held] = await counted(max);
        return !verdict!.ok && held === 0n && used > max - TAKE;
      });
      await looked();
      expect(await slices()).toEqual([]);
    },
  );
});
