// Properties of the store of several gateways beyond the checks: permissions, formats, sums by day,
// and detection of manual changes.
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { getFault } from "../../../../src/model/error.ts";
import type { Store } from "../../../../src/plugin/store/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { createSeededRandom } from "../../../../src/testing/random.ts";
import { createPostgresStore } from "../../../../plugins/stores/postgres/store.ts";
import { connectionConfig } from "../../../../plugins/stores/postgres/connection/connection-config.ts";
import { createReadPool } from "../../../../plugins/stores/postgres/connection/read-pool.ts";
import type { RunSql } from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import {
  createStoreReads,
  updateRollups,
} from "../../../../plugins/stores/postgres/read/store-reads.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../kit/database/postgres.ts";
import { makeMemory } from "../stores-under-test.ts";
import { askAt, makePostgres, settings } from "../postgres-under-test.ts";

const budget = {
  scope: "key:alice",
  unit: "nano_usd",
  max: 10_000n,
  per: "total",
  take: 1_000n,
} as const;

describe.skipIf(!hasPostgres())("the postgres store", () => {
  let server: Postgres;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.database();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  it("requires a database that stores every text, and rejects others with an explanation", async () => {
    await server.sql(server.url, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    const latin = Object.assign(new URL(server.url), { pathname: "/latin" }).href;
    const store = createPostgresStore(settings(latin));
    await expect(store.open({ instance: "one" })).rejects.toThrow(
      /uses the encoding LATIN1.+ENCODING 'UTF8'/,
    );
    await store.close();
  });

  it("finds its oldest entry through an index, however many exist", async () => {
    const made = await makePostgres(url);
    await made.store.open({ instance: "one" });
    await using by = askAt(url);
    const plans: string[] = [];
    const explained: RunSql = async ({ text, values }) => {
      await by.ask("SET enable_seqscan = off");
      const rows = await by.question({ text: `EXPLAIN ${text}`, ...(values && { values }) });
      plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
      return [];
    };
    await createStoreReads(
      explained,
      explained,
      "tollgate",
      (at) => at,
      async () => {},
    ).readSize();
    // Without an index, it would sort all of them.
    expect(plans.join()).toContain("seq_idx");
    await made.dispose();
  });

  it("runs as a role without update and delete rights, and reports as a read-only role", async () => {
    const own = await server.database();
    await server.sql(own, "CREATE ROLE runs LOGIN; CREATE ROLE reads LOGIN");
    const as = (user: string) => {
      const at = new URL(own);
      at.username = user;
      return at.href;
    };
    const made = settings(own);
    const store = createPostgresStore({
      ...made,
      address: { ...made.address, url: as("runs") },
      reportAddress: { ...made.address, url: as("reads") },
      roles: { run: "runs", read: "reads" },
    });
    await store.open({ instance: "one" });
    await store.apply([reserveCommand("a", { claims: [budget] }), reserveCommand("b")]);
    await store.apply([
      settleCommand("a"),
      { do: "key", at: NOON, key: { id: "k", digest: "d", created: NOON } },
    ]);
    expect((await store.listEntries({})).items).toHaveLength(3);
    expect((await store.sumEntries({ by: ["key"] }))[0]?.calls).toBe(1);
    expect(await store.verify!()).toEqual([]);
    await store.close();
    const readme = await readFile("plugins/stores/postgres/README.md", "utf8");
    const [, shown] = /```sql\n(.+?)```/s.exec(readme)!;
    expect(await server.sql(as("reads"), shown!)).toMatch(/^alice/);
    for (const statement of [
      "UPDATE tollgate.ledger_row SET cost = 0",
      "DELETE FROM tollgate.ledger_row",
      "UPDATE tollgate.terms SET model = 'm'",
      "DELETE FROM tollgate.terms",
      "DELETE FROM tollgate.batch",
      "UPDATE tollgate.batch SET hash = ''",
      "UPDATE tollgate.note SET text = ''",
    ]) {
      await expect(server.sql(as("runs"), statement)).rejects.toThrow(/permission denied/);
      await expect(server.sql(as("reads"), statement)).rejects.toThrow(/permission denied/);
      // Nor does the owner by accident.
      await expect(server.sql(own, statement)).rejects.toThrow(/never changed/);
    }
    await expect(
      server.sql(as("reads"), "INSERT INTO tollgate.meter (id) VALUES ('m')"),
    ).rejects.toThrow(/permission denied/);
  });

  it("rejects an older database that it may not migrate, and an unknown version", async () => {
    const own = await server.database();
    const store = createPostgresStore(settings(own, { migratesOnStart: false }));
    const codeOf = async (work: Promise<unknown>) =>
      work.then(
        () => undefined,
        (error: unknown) => getFault(error)?.code,
      );
    expect(await codeOf(store.open({ instance: "one" }))).toBe("older_schema");
    expect(await store.commands!["status"]!.run({})).toMatchObject({ version: 0, expand: [1] });
    const plan = (await store.commands!["plan"]!.run({})) as { statements: string[] };
    expect(await store.commands!["migrate"]!.run({})).toEqual({ made: [1] });
    expect(await store.commands!["migrate"]!.run({})).toEqual({ made: [] });
    await store.open({ instance: "one" });
    await store.close();
    // The plan equals the migration.
    const other = await server.database();
    await server.sql(other, plan.statements.join(";\n"));
    const tables =
      "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relname !~ '_20..' AND relnamespace = 'tollgate'::regnamespace";
    expect(await server.sql(other, tables)).toBe(await server.sql(own, tables));
    await server.sql(own, "INSERT INTO tollgate.schema_version VALUES (99, 98)");
    expect(await codeOf(store.open({ instance: "two" }))).toBe("newer_schema");
    await server.sql(own, "UPDATE tollgate.schema_version SET min_version = 1 WHERE version = 99");
    await store.open({ instance: "two" });
    await store.close();
  });

  it("verifies the primary, not a replica", async () => {
    const made = await makePostgres(url);
    const behind = await server.database();
    const other = createPostgresStore(settings(behind));
    await other.open({ instance: "other" });
    const store = createPostgresStore({
      ...settings(url),
      reportAddress: { ...settings(url).address, url: behind },
    });
    await store.open({ instance: "one" });
    await store.apply([reserveCommand("a", { claims: [budget] })]);
    expect(await store.verify!()).toEqual([]);
    await server.sql(url, "UPDATE tollgate.meter SET reserved = reserved + 1");
    expect((await store.verify!()).map(({ message }) => message).join()).toMatch(/open calls/);
    await other.close();
    await store.close();
    await made.dispose();
  });

  it("two gateways that start on an empty database create one schema", async () => {
    const own = await server.database();
    const stores = [1, 2, 3].map(() => createPostgresStore(settings(own)));
    await Promise.all(stores.map((store, i) => store.open({ instance: `i${i}` })));
    await Promise.all(stores.map((store, i) => store.apply([reserveCommand(`a${i}`)])));
    expect((await stores[0]!.listEntries({})).items).toHaveLength(3);
    await Promise.all(stores.map((store) => store.close()));
  });

  it.each([false, true])(
    "no report is JIT-compiled, which takes longer than the report (behind a pooler: %s)",
    async (pooled) => {
      await using compiling = await startPostgres({ settings: ["jit=on"] });
      const { address } = settings(compiling.url);
      const connecting = () =>
        connectionConfig({ ...address, isPooled: pooled }, { statementMs: 1_000 });
      const reports = createReadPool(connecting, 1, pooled);
      for (let i = 0; i < 2; i++) {
        expect(await reports.sql({ text: "SHOW jit" })).toEqual([{ jit: "off" }]);
        // A failed one leaves nothing for the next one.
        await expect(reports.sql({ text: "SELECT 1 / 0" })).rejects.toThrow(/division/);
      }
      await reports.close();
    },
  );

  it.each([
    [
      "a row's cost",
      "UPDATE tollgate.ledger_row SET cost = cost + 1 WHERE kind = 1",
      /was changed after it was written/,
    ],
    [
      "a row's text",
      "UPDATE tollgate.ledger_row SET rest = replace(rest, 'r-a', 'r-b')",
      /was changed after it was written/,
    ],
    [
      "a row that is gone",
      "DELETE FROM tollgate.ledger_row WHERE kind = 1",
      /rows, but was written with/,
    ],
    [
      "terms of rows",
      "UPDATE tollgate.terms SET model = model || 'x'",
      /was changed after it was written/,
    ],
    ["terms that are gone", "DELETE FROM tollgate.terms", /was changed after it was written/],
    ["the last batch", "DELETE FROM tollgate.batch WHERE n = 3", /wrote 3 batches|never written/],
    ["a batch within", "DELETE FROM tollgate.batch WHERE n = 2", /The batch is missing/],
    [
      "a row behind the last batch",
      "INSERT INTO tollgate.ledger_row (node, n, i, terms, kind, attempt, qualifier, started_at, at, state, outcome) SELECT node, 9, i, terms, kind, attempt || 'x', qualifier, started_at, at, state, outcome FROM tollgate.ledger_row LIMIT 1",
      /wrote 3 batches, but 9 are in the database/,
    ],
    [
      "how many batches there are",
      "UPDATE tollgate.node SET n = 2",
      /wrote 2 batches, but 3 are in the database/,
    ],
    [
      "the one chain",
      "UPDATE tollgate.batch SET chain_hash = hash WHERE n = 2",
      /chain of all batches is broken/,
    ],
    [
      "what a meter holds",
      "UPDATE tollgate.meter SET reserved = reserved + 1",
      /budget leases and open calls have/,
    ],
    [
      "a key's record",
      "UPDATE tollgate.key SET record = replace(record, 'k1', 'k2')",
      /outside of Tollgate's commands/,
    ],
  ])("%s that was changed manually is found", async (_what, statement, words) => {
    const made = await makePostgres(url);
    const { store } = made;
    await store.open({ instance: "one" });
    await store.apply([
      reserveCommand("a", { claims: [budget] }),
      reserveCommand("open", { claims: [budget] }),
    ]);
    await store.apply([settleCommand("a")]);
    await store.apply([{ do: "key", at: NOON, key: { id: "k1", digest: "d", created: NOON } }]);
    expect(await store.verify!()).toEqual([]);
    await using by = askAt(url);
    await by.ask(`BEGIN; SET LOCAL session_replication_role = replica; ${statement}; COMMIT`);
    const problems = await store.verify!();
    expect(problems.map(({ message }) => message).join("\n")).toMatch(words);
    await made.dispose();
  });

  it("sums by day equal their rows, whatever is already summed", async () => {
    const made = await makePostgres(url);
    const memory = await makeMemory();
    const stores: readonly Store[] = [made.store, memory.store];
    for (const store of stores) await store.open({ instance: "one" });
    const next = createSeededRandom(11);
    const below = (n: number) => Math.floor(next() * n);
    const of = <T>(...some: readonly T[]): T => some[below(some.length)]!;
    const DAY = 86_400_000;
    await using by = askAt(url);
    for (let round = 0; round < 4; round++) {
      const batch = Array.from({ length: 25 }, (_, i) => {
        const attempt = `r${round}.${i}`;
        const at = NOON + below(5 * DAY);
        const target = {
          provider: of("a", "b"),
          model: of("m", "x/n"),
          protocol: null,
          credential: of("c", "d"),
        };
        const labels = of<Record<string, string>>({}, { team: "web" }, { team: "web", env: "a=b" });
        const account = of(undefined, "acme", "acme/web");
        const state = of("exact", "estimated", "void", "unpriced");
        const costNano = state === "unpriced" ? null : state === "void" ? 0n : BigInt(below(1_000));
        const usage =
          state === "void" ? {} : { input: below(50), seconds: below(100) / 8, output: below(9) };
        return [
          reserveCommand(attempt, {
            at,
            target,
            labels,
            key: of("k", "l"),
            price: of("p1", null),
            ...(account && { account }),
          }),
          ...(below(6) > 0
            ? [
                settleCommand(attempt, {
                  at: at + below(DAY),
                  state,
                  costNano,
                  usage,
                  outcome: of("ok", "timeout"),
                }),
              ]
            : []),
        ];
      }).flat();
      for (const store of stores) await store.apply(batch);
      const settled = batch.find((c) => c.do === "settle");
      const adjust = {
        do: "adjust",
        at: NOON + DAY,
        attempt: settled!.attempt,
        costNano: -3n,
        // For the reader: no sum includes it.
        usage: { input: 5, seconds: 0.5 },
        reason: `r${round}`,
        actor: "x",
      } as const;
      for (const store of stores) await store.apply([adjust]);
      if (round === 2) continue;
      await made.store.listEntries({}, { limit: 1 });
      await updateRollups(
        async ({ text, values = [] }) => by.ask(text.replace("$1", `${values[0]}`)),
        "tollgate",
      );
      for (const query of QUERIES(DAY)) {
        const [mine, model] = await Promise.all(stores.map((store) => store.sumEntries(query)));
        expect(mine, JSON.stringify(query)).toEqual(model);
      }
    }
    await made.dispose();
  });
});

/** By every dimension, with every filter; full days, parts of days, and time zones. */
const QUERIES = (DAY: number): readonly Parameters<Store["sumEntries"]>[0][] => {
  const noon = NOON;
  const midnight = Math.floor(NOON / DAY) * DAY;
  return [
    { by: [] },
    { by: ["day"] },
    { by: ["key", "day"], from: midnight, to: midnight + 2 * DAY },
    { by: ["model"], from: noon, to: noon + 2 * DAY },
    { by: ["model"], from: noon, to: noon + 3_600_000 },
    { by: ["label"], from: noon + DAY },
    { by: ["labels", "outcome"], to: noon + 3 * DAY },
    { by: ["account", "state"] },
    { by: ["accounts", "price"], key: "k" },
    { by: ["hour"], from: noon, to: noon + DAY },
    { by: ["day"], zone: "Asia/Kathmandu" },
    { by: ["provider"], zone: "Asia/Kathmandu" },
    { by: [], state: "void" },
    { by: ["credential"], state: "exact" },
    { by: ["key"], state: "open" },
    { by: [], account: "web" },
    { by: [], label: "env=a=b", model: "a/x/n" },
    { by: ["frontend"], outcome: "timeout" },
  ];
};
