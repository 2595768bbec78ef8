// Common data of calls is written once per gateway on PostgreSQL. It is deleted with the last row
// that uses it, and erased in place. A gateway that caches it writes it again then, and no row
// lacks it.
import * as fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hashLabels } from "tollgate/store";
import { connectionConfig } from "../../../../plugins/stores/postgres/connection/connection-config.ts";
import { erase } from "../../../../plugins/stores/postgres/retention/erasure.ts";
import {
  PipelinedConnection,
  type RunSql,
} from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { createWriter } from "../../../../plugins/stores/postgres/writer.ts";
import type { PostgresStore } from "../../../../plugins/stores/postgres/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { hasPostgres, startPostgres, type Postgres } from "../../../kit/database/postgres.ts";
import { until } from "../../../kit/wait.ts";
import { askAt, makePostgres, settings } from "../postgres-under-test.ts";
import { trialCount } from "../../../kit/law-effort.ts";
import { codePoint } from "../../../kit/code-points.ts";

const LABELS = { user: "canary-4711" };
const DAY = 86_400_000;

/** It loses the response to one commit. */
class Forgetful extends PipelinedConnection {
  loses = false;
  override async connect(): Promise<RunSql> {
    const ask = await super.connect();
    return async (question) => {
      const rows = await ask(question);
      if (question.text !== "COMMIT" || !this.loses) return rows;
      this.loses = false;
      throw new Error("Connection terminated unexpectedly");
    };
  }
}

describe.skipIf(!hasPostgres())("ledger texts", () => {
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
    two = (await made.openAnother()) as PostgresStore;
    end = made.dispose;
    await one.open({ instance: "one" });
    await two.open({ instance: "two" });
    await by.ask("SET session_replication_role = replica");
  });
  afterEach(() => end());

  const call = async (store: PostgresStore, attempt: string) => {
    await store.apply([reserveCommand(attempt, { labels: LABELS })]);
    await store.apply([settleCommand(attempt)]);
  };
  const terms = async () => (await by.ask("SELECT node, id FROM tollgate.terms")).length;
  const said = async (attempt: string) =>
    (await one.listEntries({ attempt })).items.map(({ labels }) => labels);

  it("are written once, also with a batch in exact mode", async () => {
    for (const attempt of ["a", "b"]) await call(one, attempt);
    const late = { attempt: "a", costNano: -2n, reason: "refund", actor: "x" };
    await one.apply([{ do: "adjust", at: NOON + 1, ...late }]);
    await call(one, "c");
    expect(await terms()).toBe(1);
    await call(two, "d");
    expect(await terms()).toBe(2);
    expect(await one.verify!()).toEqual([]);
  });

  it("rows are verified by their content, whatever it is", async () => {
    const odd = fc.oneof(
      fc.string({ unit: codePoint }),
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
          await one.apply([reserveCommand(attempt, { labels: { [name]: name } })]);
          await one.apply([settleCommand(attempt, { ...more, usage: { input: 1, seconds: 0.5 } })]);
        }
        expect(await one.verify!()).toEqual([]);
      }),
      { numRuns: trialCount(20) },
    );
  });

  it("that were erased are written again by each gateway that uses them, and erased ones stay erased", async () => {
    await call(one, "a");
    await call(two, "b");
    await one.maintenance!.erase!({ label: { name: "user", value: LABELS.user } });
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

  it("are deleted with the last row that uses them, and a gateway with a cached ID writes them again", async () => {
    await call(one, "a");
    await call(two, "b");
    await one.maintenance!.prune!(NOON + DAY);
    expect(await by.ask("SELECT 1 FROM tollgate.ledger_row")).toEqual([]);
    expect(await terms()).toBe(0);
    await call(one, "c");
    await call(two, "d");
    expect(await said("c")).toEqual([LABELS, LABELS]);
    expect(await said("d")).toEqual([LABELS, LABELS]);
    expect(await one.verify!()).toEqual([]);
  });

  it("are not deleted while a batch that uses them is being written", async () => {
    const claims = [
      { scope: "key:k", unit: "nano_usd", max: 1_000n, per: "total", take: 1n },
    ] as const;
    await one.apply([reserveCommand("a", { claims })]);
    await one.apply([settleCommand("a", { costNano: 0n })]);
    await by.ask("DELETE FROM tollgate.ledger_row");
    await using holder = askAt(url);
    await using sweeper = askAt(url);
    await holder.ask("BEGIN");
    await holder.ask("SELECT 1 FROM tollgate.meter FOR UPDATE");
    const writes = one.apply([reserveCommand("b", { claims })]);
    const waiting = async (many: number) =>
      until(async () => {
        const rows = await by.ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
        return rows.length >= many;
      });
    await waiting(1);
    const sweeps = sweeper.ask("SELECT tollgate.delete_unused_terms_1(0, 0, 2000)");
    // Without any delay it ends immediately.
    await Promise.race([waiting(2), sweeps]);
    await holder.ask("COMMIT");
    await Promise.all([writes, sweeps]);
    expect((await one.listEntries({ attempt: "b" })).items).toHaveLength(1);
  });

  it("of an unresponsive gateway are kept for the next run; those of others are deleted", async () => {
    await call(one, "a");
    await call(two, "b");
    await by.ask("DELETE FROM tollgate.ledger_row");
    await using holder = askAt(url);
    await holder.ask("BEGIN");
    await holder.ask("SELECT 1 FROM tollgate.node WHERE id = 'one' FOR UPDATE");
    await by.ask("SELECT tollgate.delete_unused_terms_1(0, 0, 2000)");
    expect(await terms()).toBe(1);
    await holder.ask("COMMIT");
    await by.ask("SELECT tollgate.delete_unused_terms_1(0, 0, 2000)");
    expect(await terms()).toBe(0);
  });

  it("are deleted in steps, so that a writing gateway never waits for all", async () => {
    const [node] = await by.ask("SELECT epoch FROM tollgate.node WHERE id = 'one'");
    await by.ask(`INSERT INTO tollgate.terms (node, id, key, provider, model, credential, frontend)
      SELECT ${node!["epoch"]}, i, 'k', 'p', 'm', 'c', 'f' FROM generate_series(1, 5000) i`);
    const next = async (id: number) => {
      const [at] = await by.ask(
        `SELECT p_id FROM tollgate.delete_unused_terms_1(${node!["epoch"]}, ${id}, 2000)`,
      );
      return [at!["p_id"], await terms()];
    };
    expect(await next(0)).toEqual(["2000", 3_000]);
    expect(await next(2_000)).toEqual(["4000", 1_000]);
    await one.maintenance!.prune!(NOON);
    expect(await terms()).toBe(0);
  });

  it("are known to exist after the response to an exact batch was lost", async () => {
    const of = settings(url);
    const line = new Forgetful(() => connectionConfig(of.address, { statementMs: 2_000 }));
    const writer = createWriter(line, { ...of, usesPreparedStatements: true });
    await writer.open({ instance: "three" }, () => {});
    // Two limits of one meter: exact mode is used.
    const claims = (max: bigint) =>
      [{ scope: "key:k", unit: "nano_usd", max, per: "total", take: 1n }] as const;
    line.loses = true;
    await writer.apply([
      reserveCommand("a", { claims: claims(100n) }),
      reserveCommand("b", { claims: claims(200n) }),
    ]);
    expect(line.loses).toBe(false);
    const [before] = await by.ask("SELECT count(*) AS many FROM tollgate.terms");
    expect(await writer.apply([reserveCommand("c")])).toEqual([{ ok: true }]);
    expect(await by.ask("SELECT count(*) AS many FROM tollgate.terms")).toEqual([before]);
    await writer.close(true);
  });

  it("that were erased stay erased, also if calls end with the old texts before their gateway learns of it", async () => {
    const of = settings(url);
    const line = new PipelinedConnection(() =>
      connectionConfig(of.address, { statementMs: 2_000 }),
    );
    const writer = createWriter(line, { ...of, usesPreparedStatements: true });
    await one.close();
    await two.close();
    await writer.open({ instance: "three" }, () => {});
    const all = ["a", "b", "c"];
    for (const attempt of all) await writer.apply([reserveCommand(attempt, { labels: LABELS })]);
    const ask: RunSql = async (question) => {
      const rows = await by.question(question);
      if (question.text.includes("erase_1"))
        for (const attempt of all.splice(0, 2)) await writer.apply([settleCommand(attempt)]);
      return rows;
    };
    await erase(ask, "tollgate", writer, { label: { name: "user", value: LABELS.user } });
    await writer.apply([settleCommand("c")]);
    expect(await by.ask("SELECT DISTINCT labels FROM tollgate.terms")).toEqual([
      { labels: '{"user":"erased"}' },
    ]);
    await writer.close(true);
  });

  it("with labels that were cleared manually, with the chain's placeholder, are found", async () => {
    await call(one, "a");
    expect(await one.verify!()).toEqual([]);
    const [row] = await by.ask("SELECT labels, salt FROM tollgate.terms");
    await by.ask(
      `UPDATE tollgate.terms SET labels = '${JSON.stringify(hashLabels(row!["labels"]!, row!["salt"]!))}', salt = NULL`,
    );
    expect((await one.verify!()).map(({ message }) => message).join()).toMatch(
      /A text was removed/,
    );
  });

  it("of a key with many texts are erased in the time of one read", async () => {
    for (let n = 0; n < 30; n++) {
      const names = Array.from({ length: 100 }, (_, i) => `u${n}-${i}`);
      await one.apply(names.map((id) => reserveCommand(id, { at: NOON + n, labels: { id } })));
      await one.apply(names.map((id) => settleCommand(id, { at: NOON + n })));
    }
    await one.maintenance!.erase!({ key: "alice" });
    expect(await by.ask("SELECT DISTINCT labels FROM tollgate.terms")).toEqual([
      { labels: '{"id":"erased"}' },
    ]);
    const totals = await one.sumEntries({ by: ["labels", "day"] });
    expect(totals.map(({ calls }) => calls)).toEqual([3_000]);
    expect(await one.verify!()).toEqual([]);
  });

  it("and rows are verified in a database with the encoding SQL_ASCII", async () => {
    await by.ask(
      "CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
    );
    const made = await makePostgres(Object.assign(new URL(url), { pathname: "/plain" }).href);
    await made.store.open({ instance: "one" });
    await made.store.apply([reserveCommand("é")]);
    await made.store.apply([settleCommand("é", { outcome: "\u{1F600}" })]);
    expect(await made.store.verify!()).toEqual([]);
    await made.dispose();
  });

  it("of calls before 1970 are counted correctly", async () => {
    for (const [i, at] of [-DAY, -1, 0].entries()) {
      await one.apply([reserveCommand(`c${i}`, { at: at - 1 })]);
      await one.apply([settleCommand(`c${i}`, { at })]);
    }
    const calls = async (query: Parameters<PostgresStore["sumEntries"]>[0]) =>
      (await one.sumEntries(query)).map(({ by: { day, hour }, calls: many }) => [
        day ?? hour,
        many,
      ]);
    const days = [
      ["1969-12-31", 2],
      ["1970-01-01", 1],
    ];
    for (let summed = 0; summed < 2; summed++) {
      expect(await calls({ by: ["day"] })).toEqual(days);
      expect(await calls({ by: ["day"], from: -DAY, to: DAY })).toEqual(days);
      expect(await calls({ by: ["hour"], from: -10_000, to: 0 })).toEqual([
        ["1969-12-31T23:00Z", 1],
      ]);
      await one.listEntries({}, { limit: 1 });
      await by.ask("SELECT tollgate.update_rollups_1(1000)");
    }
  });
});
