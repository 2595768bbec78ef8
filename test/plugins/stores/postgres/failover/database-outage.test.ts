// A gateway in offline mode: leases are never exceeded, calls are recorded once, and calls without
// a lease are rejected.
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { getFault } from "../../../../../src/model/error.ts";
import type { StoreEvent } from "../../../../../src/plugin/store/store-instance.ts";
import type { StoreCommand } from "../../../../../src/plugin/store/store.ts";
import { reserveCommand, settleCommand } from "../../../../../src/testing/store.ts";
import {
  createPostgresStore,
  type PostgresStore,
} from "../../../../../plugins/stores/postgres/store.ts";
import { installTestClock } from "../../../../kit/clock.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../../kit/database/postgres.ts";
import { startTcpProxy, type TcpProxy } from "../../../../kit/database/tcp-proxy.ts";
import { until } from "../../../../kit/wait.ts";
import { askAt, makePostgres, settings } from "../../postgres-under-test.ts";

const budget = {
  scope: "key:alice",
  unit: "nano_usd",
  max: 100_000n,
  per: "total",
  take: 1_000n,
} as const;
const rate = { scope: "key:alice", unit: "requests", max: 6, per: "hour", take: 1n } as const;
/** A tenth of the rest: 100 calls in steps of 10. */
const away = { maxMs: 60_000, share: 0.1 };

const take = (attempt: string, claims: readonly object[] = [budget]): StoreCommand =>
  reserveCommand(attempt, { at: Date.now(), claims: claims as never });
const pay = (attempt: string, costNano = 900n): StoreCommand =>
  settleCommand(attempt, { at: Date.now(), costNano });
const OK = { ok: true };
const codeOf = (work: Promise<unknown>): Promise<string | undefined> =>
  work.then(
    () => undefined,
    (error: unknown) => getFault(error)?.code ?? String(error),
  );

describe.skipIf(!hasPostgres())("a gateway without its database", () => {
  let server: Postgres;
  let url: string;
  let road: TcpProxy;
  let folder: string;
  let made: Awaited<ReturnType<typeof makePostgres>>;
  let news: StoreEvent[];
  const open: PostgresStore[] = [];
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    road = await startTcpProxy(server);
    folder = await mkdtemp(join(tmpdir(), "tollgate-apart-"));
    news = [];
    made = await makePostgres(url, { clock: "database" });
    await made.store.open({ instance: "other" });
  });
  afterEach(async () => {
    for (const store of open.splice(0)) await store.close(false);
    await made.dispose();
    await road[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  /** Through the link, with its own folder. */
  async function opened(instance: string, goesOn?: typeof away): Promise<PostgresStore> {
    const address = settings(road.through(url)).address;
    const store = createPostgresStore(
      settings(url, {
        address,
        ownerAddress: address,
        reportAddress: address,
        clock: "database",
        offline: goesOn,
        spoolDir: () => folder,
      }),
    );
    open.push(store);
    await store.open({ instance }, (one) => void news.push(one));
    return store;
  }
  const node = (instance: string, forMs = away.maxMs) =>
    opened(instance, { ...away, maxMs: forMs });
  const slices = async (): Promise<[string, bigint][]> => {
    await using by = askAt(url);
    const rows = await by.ask("SELECT node, amount FROM tollgate.budget_lease ORDER BY node");
    return rows.map(({ node, amount }) => [node!, BigInt(amount!)]);
  };
  const held = async () => {
    const { take: _, ...limit } = budget;
    const [count] = await made.store.readLimits!([limit], Date.now());
    return [count!.used, count!.reserved] as const;
  };
  /** The server writes it, and cannot report it, because the link is cut in the meantime. */
  async function lost<T>(work: () => Promise<T>): Promise<T> {
    await using by = askAt(url);
    await by.ask("BEGIN");
    await by.ask("SELECT 1 FROM tollgate.meter FOR UPDATE");
    const asked = work();
    asked.catch(() => {});
    await until(
      async () =>
        (
          await by.ask(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'tollgate'",
          )
        ).length > 0,
    );
    road.cut();
    await by.ask("COMMIT");
    return asked;
  }
  /** Its rows, with a settle by its outcome. */
  const kindsOf = async (attempt: string) =>
    (await made.store.listEntries({ attempt })).items.map(({ kind, outcome }) =>
      kind === "settle" ? outcome : kind,
    );
  /** It has called with that budget, and leased a part of it. */
  async function sliced(store: PostgresStore): Promise<void> {
    await store.apply([take("first")]);
    await store.apply([pay("first")]);
    await until(async () => (await slices()).length === 1);
    // It has received this information too.
    await store.apply([{ do: "heartbeat", at: Date.now() }]);
  }

  it("continues within its budget lease, is recorded once, and returns the rest", async () => {
    const store = await node("one");
    await sliced(store);
    const [, part] = (await slices())[0]!;
    expect(part).toBeGreaterThan(9_800n);
    expect(await held()).toEqual([900n, part]);
    await store.apply([take("under-way")]);
    road.cut();
    expect((await store.apply([take("a0")]))[0]!.ok).toBe(true);
    expect(news.map(({ type }) => type)).toContain("offline_started");
    for (let i = 1; i < 9; i++) expect((await store.apply([take(`a${i}`)]))[0]!.ok).toBe(true);
    // Slightly less than ten thousand were leased.
    expect(await codeOf(store.apply([take("over")]))).toBe("not_available_offline");
    expect((await store.apply([take("a0")]))[0]!.ok).toBe(true);
    // Its end frees budget for another.
    await store.apply([pay("a0", 0n), pay("under-way", 800n)]);
    expect((await store.apply([take("again")]))[0]!.ok).toBe(true);
    road.mend();
    await until(() => news.some(({ type }) => type === "offline_ended"));
    await store.apply([...Array.from({ length: 8 }, (_, i) => pay(`a${i + 1}`)), pay("again")]);
    await until(async () => (await held())[1] <= 9_999n && (await slices()).length <= 1);
    expect((await held())[0]).toBe(900n + 800n + 9n * 900n);
    const { items } = await store.listEntries({}, { limit: 100 });
    const attempts = items.map(({ kind, attempt }) => `${kind} ${attempt}`);
    expect(new Set(attempts).size).toBe(attempts.length);
    expect(attempts.filter((each) => each.startsWith("settle"))).toHaveLength(12);
    expect(await store.verify!()).toEqual([]);
    await store.close();
    open.pop();
    expect(await slices()).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  });

  it("rejects calls without a lease immediately: other budgets, no budget, an unleased part, commands", async () => {
    const store = await node("one");
    await sliced(store);
    await store.apply([
      { do: "key", at: Date.now(), key: { id: "k", digest: "d", created: Date.now() } },
    ]);
    // Information about itself does not reduce later requests.
    await until(() => news.some(({ type }) => type === "keys_changed"));
    await store.findKey("d");
    road.cut();
    await store.apply([take("begins")]);
    // A call that queried the database waits a moment before the next query.
    const time = installTestClock();
    time.stop();
    for (const claims of [
      [{ ...budget, scope: "key:bob" }],
      [],
      [budget, { ...budget, scope: "team" }],
    ])
      expect(await codeOf(store.apply([take("b", claims)]))).toBe("not_available_offline");
    const key = { id: "l", digest: "e", created: Date.now() };
    const change: StoreCommand = { do: "key", at: key.created, key };
    expect(await codeOf(store.apply([change]))).toBe("not_available_offline");
    time.go();
    expect((await store.findKey("d"))?.id).toBe("k");
    expect(await codeOf(store.findKey("unknown"))).toBe("store_unreachable");
    // A rate limit is divided: two gateways live, so three of six.
    const verdicts = [];
    for (let i = 0; i < 4; i++)
      verdicts.push((await store.apply([take(`r${i}`, [budget, rate])]))[0]!.ok);
    expect(verdicts).toEqual([true, true, true, false]);
    road.mend();
    await until(() => news.some(({ type }) => type === "offline_ended"));
    expect((await made.store.listEntries({ attempt: "b" })).items).toEqual([]);
  });

  it("continues for the configured time, and open calls may end afterwards", async () => {
    const store = await node("one", 3_000);
    await sliced(store);
    road.cut();
    await store.apply([take("begun", [{ ...budget, take: 1n }])]);
    let n = 0;
    // Thousands of these would fit.
    await until(
      async () =>
        (await codeOf(store.apply([take(`n${n++}`, [{ ...budget, take: 1n }])]))) ===
        "not_available_offline",
    );
    expect((await slices())[0]![1]).toBeGreaterThan(BigInt(2 * n));
    await store.apply([pay("begun", 1n)]);
    road.mend();
    await until(() => news.some(({ type }) => type === "offline_ended"));
    expect((await store.listEntries({ attempt: "begun" })).items).toHaveLength(2);
  });

  it("admits nothing on a spent lease, not even a call that costs nothing", async () => {
    const store = await node("one");
    await sliced(store);
    const [, part] = (await slices())[0]!;
    road.cut();
    expect((await store.apply([take("all", [{ ...budget, take: part }])]))[0]!.ok).toBe(true);
    expect(await codeOf(store.apply([take("none", [{ ...budget, take: 0n }])]))).toBe(
      "not_available_offline",
    );
    // A repeated call is not a new one.
    expect(await store.apply([take("all", [{ ...budget, take: part }])])).toEqual([{ ok: true }]);
  });

  it("rejects a call that it could not write to its disk", async () => {
    const store = await node("one");
    await sliced(store);
    const [, part] = (await slices())[0]!;
    road.cut();
    const all = [{ ...budget, take: part }];
    await rm(folder, { recursive: true });
    await expect(store.apply([take("lost", all)])).rejects.toThrow("ENOENT");
    await mkdir(join(folder, "spool-one"), { recursive: true });
    expect(await store.apply([take("kept", all)])).toEqual([{ ok: true }]);
  });

  it("whose lease expired replays its calls under another number, each once", async () => {
    const store = await node("one");
    await sliced(store);
    await store.apply([take("under-way")]);
    road.cut();
    await store.apply([take("a")]);
    await store.apply([pay("a"), pay("under-way", 600n)]);
    await made.expireLease("one");
    await made.store.apply([{ do: "heartbeat", at: Date.now() }]);
    road.mend();
    await until(() => news.some(({ type }) => type === "offline_ended"));
    expect(await kindsOf("a")).toEqual(["reserve", "ok"]);
    expect(await kindsOf("under-way")).toEqual(["reserve", "recovered", "adjust"]);
    await until(async () => (await held())[1] < 11_000n && (await held())[0] === 2_400n);
    expect((await store.apply([take("next")]))[0]!.ok).toBe(true);
    expect(await made.store.verify!()).toEqual([]);
  });

  it("replays a batch whose response was lost once, whether it was committed or not", async () => {
    const store = await node("one");
    await sliced(store);
    expect(await lost(() => store.apply([take("doubt")]))).toEqual([{ ok: true }]);
    await store.apply([pay("doubt", 500n)]);
    road.mend();
    await until(() => news.some(({ type }) => type === "offline_ended"));
    const { items } = await made.store.listEntries({ attempt: "doubt" });
    expect(items.map(({ kind }) => kind)).toEqual(["reserve", "settle"]);
    expect((await held())[0]).toBe(1_400n);
    expect(await made.store.verify!()).toEqual([]);
  });

  it("that rejects new calls undoes a committed batch whose response was lost: nothing stays open", async () => {
    const store = await opened("one");
    await store.apply([take("first")]);
    expect(await codeOf(lost(() => store.apply([take("doubt")])))).toBeDefined();
    expect(await kindsOf("doubt")).toEqual(["reserve"]);
    road.mend();
    await until(async () => (await kindsOf("doubt")).length === 2);
    expect(await kindsOf("doubt")).toEqual(["reserve", "abandoned"]);
    expect(await held()).toEqual([0n, 1_000n]);
  });

  it("spends a lease in one outage: until it is returned, the next outage spends nothing of it", async () => {
    const store = await node("one");
    await sliced(store);
    road.cut();
    expect((await store.apply([take("a")]))[0]!.ok).toBe(true);
    await using by = askAt(url);
    await by.ask("ALTER FUNCTION tollgate.return_lease_1 RENAME TO unslice_off");
    road.mend();
    await until(() => news.some(({ type }) => type === "offline_ended"));
    road.cut();
    expect(await codeOf(store.apply([take("b")]))).toBe("not_available_offline");
    await by.ask("ALTER FUNCTION tollgate.unslice_off RENAME TO return_lease_1");
    road.mend();
    await until(async () => (await slices()).length === 0);
    await store.apply([pay("a")]);
    expect(await held()).toEqual([1_800n, 0n]);
  });

  it("reports thresholds that were reached in the meantime after the database has the rows", async () => {
    const store = await node("one");
    const half = { ...budget, max: 1_000n, take: 470n };
    await store.apply([take("first", [half])]);
    await store.apply([pay("first", 470n)]);
    await until(async () => (await slices()).length === 1);
    await store.apply([{ do: "heartbeat", at: Date.now() }]);
    road.cut();
    expect((await store.apply([take("a", [{ ...half, take: 40n }])]))[0]!.ok).toBe(true);
    expect(await store.apply([pay("a", 40n)])).toEqual([{ ok: true }]);
    road.mend();
    await until(() => news.some(({ type }) => type === "offline_ended"));
    const crossed = news.flatMap((each) =>
      each.type === "thresholds_reached" ? each.crossings : [],
    );
    expect(crossed).toMatchObject([{ percent: 50, used: 510n, max: 1_000n }]);
  });

  it("that rejects new calls spools the ends of open ones: each is replayed once, by it or by the next process", async () => {
    const store = await opened("one");
    const calls = ["a", "b", "c"];
    await store.apply(calls.map((each) => take(each)));
    road.cut();
    expect(await codeOf(store.apply([take("new")]))).toBeDefined();
    expect(news.filter(({ type }) => type === "unavailable")).toHaveLength(1);
    const ends = async (call: string) => expect(await store.apply([pay(call)])).toEqual([OK]);
    await ends("a");
    // It accepts no new calls, which the host learns from its result.
    const isThere = store.apply([{ do: "heartbeat", at: Date.now() }]);
    expect(await codeOf(isThere)).toBe("store_unreachable");
    expect(await codeOf(store.apply([pay("b"), take("new")]))).toBe("not_available_offline");
    expect((await made.store.listEntries({ attempt: "a" })).items).toHaveLength(1);
    road.mend();
    await until(() => news.some(({ type }) => type === "offline_ended"));
    expect(await kindsOf("a")).toEqual(["reserve", "ok"]);
    expect(await store.apply([take("d")])).toMatchObject([OK]);
    road.cut();
    expect(await codeOf(store.apply([take("new")]))).toBe("not_available_offline");
    await ends("b");
    await store.close(false);
    open.pop();
    // Others expire its lease before its successor starts.
    await made.expireLease("one");
    await made.store.apply([{ do: "heartbeat", at: Date.now() }]);
    road.mend();
    await opened("two");
    expect(news).toContainEqual({ type: "spool_replayed", instance: "one", commands: 1 });
    expect(await Promise.all(["a", "b", "c", "d", "new"].map(kindsOf))).toEqual([
      ["reserve", "ok"],
      ["reserve", "recovered", "adjust"],
      ["reserve", "recovered"],
      ["reserve", "recovered"],
      [],
    ]);
    expect(await held()).toEqual([2n * 900n + 2n * 1_000n, 0n]);
    expect(await made.store.verify!()).toEqual([]);
  });

  it("that exits in the meantime leaves its spool on disk, and the next process replays it", async () => {
    const store = await node("one");
    await sliced(store);
    const [, part] = (await slices())[0]!;
    road.cut();
    await store.apply([take("a")]);
    await store.apply([take("b"), pay("a", 700n)]);
    await store.close(false);
    open.pop();
    // No other gateway returns what it may have spent, however long it is dead.
    await made.expireLease("one");
    await made.store.apply([{ do: "heartbeat", at: Date.now() }]);
    expect(await held()).toEqual([900n, part]);
    road.mend();
    const next = await node("two");
    expect(news).toContainEqual({ type: "spool_replayed", instance: "one", commands: 3 });
    await next.apply([{ do: "heartbeat", at: Date.now() }]);
    const { items } = await next.listEntries({ attempt: "b" });
    expect(items.map(({ kind, outcome, instance }) => [kind, outcome, instance])).toEqual(
      [
        ["reserve", "", "one"],
        ["settle", "recovered", "two"],
      ].map(([kind, outcome, who]) => [kind, expect.stringMatching(outcome!), who]),
    );
    expect(await held()).toEqual([900n + 700n + 1_000n, 0n]);
    expect((await next.listEntries({ attempt: "a" })).items).toHaveLength(2);
    expect(await next.verify!()).toEqual([]);
  });

  it("with a lost disk: the lease stays spent until an operator releases it", async () => {
    const store = await node("one");
    await sliced(store);
    const [, part] = (await slices())[0]!;
    await store.close(false);
    open.pop();
    await rm(folder, { recursive: true });
    const release = (gateway: string) =>
      (made.store as PostgresStore).commands!["release"]!.run({ gateway });
    expect(await codeOf(release("one"))).toBe("lives");
    await made.expireLease("one");
    // By the start of its ID, as `tollgate fleet` shows it. A typo releases nothing.
    expect(await codeOf(release("o-ne"))).toBe("no_gateway");
    await mkdir(folder);
    await opened("onward");
    expect(await codeOf(release("on"))).toBe("not_one");
    expect((await held())[1]).toBe(part);
    expect(await release("one")).toEqual({ slices: 1 });
    expect(await codeOf(release("onw"))).toBe("lives");
    expect((await held())[1]).toBe(0n);
    expect(await made.store.verify!()).toEqual([]);
  });

  it("near the end of a budget: leases are recalled, and the budget is spent exactly", async () => {
    const one = await node("one");
    await sliced(one);
    const address = settings(url).address;
    const folders = await mkdtemp(join(tmpdir(), "tollgate-apart-"));
    const two = createPostgresStore(
      settings(url, { address, clock: "database", offline: away, spoolDir: () => folders }),
    );
    open.push(two);
    await two.open({ instance: "two" });
    let fit = 1;
    // If others hold leases, a client gets a retry time.
    await until(async () => {
      const [verdict] = await two.apply([take(`t${fit}`)]);
      if (verdict!.ok) {
        await two.apply([pay(`t${fit}`, 1_000n)]);
        fit++;
        return false;
      }
      return (await slices()).length === 0 && (await held())[0] >= 99_900n;
    });
    // 900 and ninety-nine times 1,000.
    expect(await held()).toEqual([99_900n, 0n]);
    expect(fit).toBe(100);
    await rm(folders, { recursive: true, force: true });
  });
});
