// Tests the admission function directly, at moments that chance seldom produces: rows are locked
// until all nodes that need them wait, and a dead, late, or foreign node calls it nevertheless.
// Concurrent calls show such defects only sometimes, and this test shows them each time.
import { setTimeout as sleep } from "node:timers/promises";
import { insertNode } from "../../../plugins/stores/postgres/membership/heartbeat.ts";
import type { MeterDelta } from "../../../plugins/stores/postgres/rows/batch-plan.ts";
import { migrate } from "../../../plugins/stores/postgres/schema/migrations.ts";
import {
  TEXT_TYPES,
  PipelinedConnection,
  type RunSql,
} from "../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import {
  callApplyBatch,
  type ApplyResult,
} from "../../../plugins/stores/postgres/write/fast-path.ts";
import { TermsCache } from "../../../plugins/stores/postgres/rows/call-terms.ts";
import { startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { deadlocksIn, planted, PLANTS } from "./fleet-sql-mutants.ts";
import type { Rig, RigResult } from "../rig.ts";

const SCHEMA = "tollgate";
/**
 * A batch waits for a lock for 700 ms and is then rejected: on a slow machine, everything is
 * repeated.
 */
const TRIES = 20;

/** On a database of its own, with and without a planted defect. */
export async function fleetGate(
  postgres: Pick<Postgres, "database" | "sql">,
  plant = "",
): Promise<string[]> {
  const url = await postgres.database();
  const line = new PipelinedConnection(async () => ({ connectionString: url, types: TEXT_TYPES }));
  await migrate(await line.connect(), SCHEMA, {});
  await line.close();
  await planted(plant, (text) => postgres.sql(url, text));
  return [...(await gateAsked(url)), ...(await deadlocksIn((text) => postgres.sql(url, text)))];
}

export const rig: Rig = {
  options: {},
  async run(_, say): Promise<RigResult> {
    await using postgres = await startPostgres();
    const wrong = await fleetGate(postgres);
    const matches: Record<string, number> = {};
    for (const plant of Object.keys(PLANTS)) {
      const found = await fleetGate(postgres, plant);
      say(`${plant}: ${found.join("; ") || "NOT FOUND"}`);
      if (found.length === 0) wrong.push(`${plant} is not found`);
      matches[plant] = found.length;
    }
    return { wrong, counts: matches, seed: 0 };
  },
};

interface Hand {
  readonly ask: RunSql;
  readonly name: string;
  readonly epoch: number;
  /** Result of the function for a batch, or the code of its rejection. */
  apply(batch: {
    sums?: readonly MeterDelta[];
    closed?: readonly string[];
    n?: number;
  }): Promise<string>;
}

/** Violations of the function in this database, which no gateway uses. */
export async function gateAsked(url: string): Promise<string[]> {
  const lines: PipelinedConnection[] = [];
  const line = (): Promise<RunSql> => {
    const made = new PipelinedConnection(async () => ({
      connectionString: url,
      types: TEXT_TYPES,
    }));
    lines.push(made);
    return made.connect();
  };
  try {
    const by = await line();
    const hands: [Hand, Hand] = [
      await hand(await line(), "left"),
      await hand(await line(), "right"),
    ];
    const wrong: string[] = [];
    for (const look of [guards, orders, endsOnce, fences, buriesNone, keepsSlices])
      wrong.push(...(await look({ by, holder: await line(), hands })));
    return wrong;
  } finally {
    for (const each of lines) await each.close();
  }
}

interface Scene {
  readonly by: RunSql;
  /** Holds a transaction open while others wait. */
  readonly holder: RunSql;
  readonly hands: readonly [Hand, Hand];
}

async function hand(ask: RunSql, name: string): Promise<Hand> {
  // In the physical order of the table: no index determines the order of its rows.
  await ask({ text: "SET enable_indexscan = off; SET enable_bitmapscan = off" });
  const epoch = await insertNode(ask, SCHEMA, name, undefined, 60_000);
  let n = 0;
  const terms = new TermsCache();
  const gate = { schema: SCHEMA, durability: "synced", usesPreparedStatements: false } as const;
  return {
    ask,
    name,
    epoch,
    async apply({ sums = [], closed = [], n: as = n + 1 }) {
      const plan = {
        meterDeltas: sums,
        closedAttempts: closed,
        steps: [],
        progress: [],
        rows: [],
        openedRows: [],
      };
      const me = { epoch, n: as, hash: Buffer.from([epoch, as]), at: null, sure: false, terms };
      const said: ApplyResult | { status: string } = await callApplyBatch(
        ask,
        gate,
        plan,
        me,
      ).catch((error: unknown) => ({ status: (error as { code?: string }).code ?? String(error) }));
      if (said.status === "ok") n = as;
      return said.status;
    },
  };
}

/** A part of a budget. */
const sum = (id: string, of: Partial<MeterDelta>): MeterDelta => ({
  id,
  max: 10n,
  period: 0,
  idle: 0,
  take: 0n,
  released: 0n,
  used: 0n,
  required: null,
  running: 0n,
  calls: 1,
  ...of,
});
const take = (id: string, amount: bigint): MeterDelta =>
  sum(id, { take: amount, required: amount });
const budget = (name: string) => `nano_usd|total|0|gate:${name}`;

const held = (ids: readonly string[]) => ({
  text: `SELECT 1 FROM ${SCHEMA}.meter WHERE id = ANY ($1::text[]) FOR UPDATE`,
  values: [`{${ids.map((id) => `"${id}"`).join(",")}}`],
});

/** Number of transactions that wait for a row. */
async function waiting(by: RunSql, many: number): Promise<void> {
  for (let i = 0; i < 200; i++) {
    const [row] = await by({
      text: "SELECT count(*) AS many FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    });
    if (Number(row!["many"]) >= many) return;
    await sleep(5);
  }
}

async function meter(by: RunSql, id: string): Promise<string> {
  const [row] = await by({
    text: `SELECT level || ' used, ' || reserved || ' held' AS said FROM ${SCHEMA}.meter WHERE id = $1`,
    values: [id],
  });
  return row?.["said"] ?? "nothing";
}

/** Both have seen the remaining budget, and one of them gets it. */
async function guards({ by, holder, hands }: Scene): Promise<string[]> {
  for (let i = 0; i < TRIES; i++) {
    const id = budget(`guard-${i}`);
    await by({ text: `INSERT INTO ${SCHEMA}.meter (id) VALUES ($1)`, values: [id] });
    await holder({ text: "BEGIN" });
    await holder(held([id]));
    const both = hands.map((each) => each.apply({ sums: [take(id, 10n)] }));
    await waiting(by, 2);
    await holder({ text: "COMMIT" });
    const said = (await Promise.all(both)).toSorted();
    if (said.includes("55P03")) continue;
    const wrong: string[] = [];
    if (said.join() !== "TG002,ok")
      wrong.push(`two that had both seen room for one were answered ${said.join(" and ")}`);
    const now = await meter(by, id);
    if (now !== "0 used, 10 held")
      wrong.push(`a budget of 10, taken whole by one call, has ${now}`);
    return wrong;
  }
  return ["no two batches waited for one row"];
}

/**
 * While another transaction holds the second of three rows, each node has locked the first and not
 * the third.
 */
async function orders({ by, holder, hands }: Scene): Promise<string[]> {
  const wrong: string[] = [];
  const ids = ["a", "b", "c"].map((name) => budget(`order-${name}`));
  for (const id of ids.toReversed())
    await by({ text: `INSERT INTO ${SCHEMA}.meter (id) VALUES ($1)`, values: [id] });
  for (const each of hands)
    for (let i = 0; i < TRIES; i++) {
      await holder({ text: "BEGIN" });
      await holder(held([ids[1]!]));
      const under = each.apply({ sums: ids.map((id) => take(id, 1n)) });
      await waiting(by, 1);
      const rows = await by({
        text: `SELECT id FROM ${SCHEMA}.meter WHERE id LIKE '%|gate:order-%' ORDER BY id FOR UPDATE SKIP LOCKED`,
      });
      await holder({ text: "COMMIT" });
      if ((await under) === "55P03") continue;
      const free = rows.map((row) => row["id"]);
      if (free.length !== 1 || free[0] !== ids[2])
        wrong.push(`${each.name} takes locks out of their order: ${free.join(" and ")} was free`);
      break;
    }
  return wrong;
}

/** The fast path does not settle a call that is not open or belongs to another node. */
async function endsOnce({ by, hands: [one, other] }: Scene): Promise<string[]> {
  const wrong: string[] = [];
  const id = budget("once");
  await one.apply({ sums: [take(id, 10n)] });
  await by({
    text: `INSERT INTO ${SCHEMA}.open_call (attempt, node, started_at) VALUES ('gate:once', $1, 0)`,
    values: [one.epoch],
  });
  const end = { sums: [sum(id, { max: null, released: 10n, used: 7n })], closed: ["gate:once"] };
  const said = [await other.apply(end), await one.apply(end), await one.apply(end)];
  if (said.join() !== "TG003,ok,TG003")
    wrong.push(`a call ended by another node, by its own, and once more: ${said.join(", ")}`);
  const now = await meter(by, id);
  if (now !== "7 used, 0 held") wrong.push(`a call that held 10 and used 7 has left ${now}`);
  return wrong;
}

/** A number out of order, and a node whose lease expired. */
async function fences({ by, hands: [one, other] }: Scene): Promise<string[]> {
  const sums = [take(budget("fence"), 1n)];
  const early = await one.apply({ sums, n: 1_000 });
  await by({
    text: `UPDATE ${SCHEMA}.node SET state = 'dead' WHERE epoch = $1`,
    values: [other.epoch],
  });
  const dead = await other.apply({ sums });
  return [
    ...(early === "behind" ? [] : [`a number that is not the next was answered ${early}`]),
    ...(dead === "fenced" ? [] : [`a node that is dead was answered ${dead}`]),
  ];
}

/**
 * After an outage longer than a lease, no node has a recent heartbeat. The first one that returns
 * does not expire the others.
 */
async function buriesNone({ by, hands: [one] }: Scene): Promise<string[]> {
  const other = await insertNode(by, SCHEMA, "other", undefined, 60_000);
  await by({
    text: `UPDATE ${SCHEMA}.node SET last_heartbeat = last_heartbeat - interval '1 hour'`,
  });
  const beat = (look = true) =>
    by({
      text: `SELECT ${SCHEMA}.heartbeat_1($1::int, $2::boolean, NULL, NULL)`,
      values: [one.epoch, String(look)],
    });
  const state = async () => {
    const [row] = await by({
      text: `SELECT state FROM ${SCHEMA}.node WHERE epoch = $1`,
      values: [other],
    });
    return row!["state"];
  };
  await beat();
  const first = await state();
  await beat();
  const second = await state();
  return [
    ...(first === "live" ? [] : ["a node is dead because the database was silent"]),
    ...(second === "dead" ? [] : ["a node that stays silent is not taken for dead"]),
  ];
}

/** The offline budget of a silent node may be spent, so no other node returns it. */
async function keepsSlices({ by, hands: [one] }: Scene): Promise<string[]> {
  const id = budget("slice");
  const silent = await insertNode(by, SCHEMA, "silent", undefined, 1);
  await by({
    text: `INSERT INTO ${SCHEMA}.meter (id, reserved, max) VALUES ($1, 4, 10)`,
    values: [id],
  });
  await by({
    text: `INSERT INTO ${SCHEMA}.budget_lease (meter, node, amount, is_offline) VALUES ($1, 'silent', 4, true)`,
    values: [id],
  });
  await sleep(20);
  await by({
    text: `SELECT ${SCHEMA}.heartbeat_1($1::int, true, NULL, NULL)`,
    values: [one.epoch],
  });
  await by({ text: `SELECT ${SCHEMA}.return_dead_leases_1()` });
  const [row] = await by({
    text: `SELECT state FROM ${SCHEMA}.node WHERE epoch = $1`,
    values: [silent],
  });
  const now = await meter(by, id);
  return [
    ...(row!["state"] === "dead" ? [] : ["a node whose lease is over is not taken for dead"]),
    ...(now === "0 used, 4 held" ? [] : [`4 that a dead node had set aside: ${now}`]),
  ];
}
