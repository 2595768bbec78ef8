// A fleet's ledger after more than a year: thirteen months of calls in PostgreSQL, written like a
// gateway's. It measures a report, a full verification, and the disk space of a call.
import type { Store } from "tollgate/plugin";
import { startPostgres } from "../../kit/database/postgres.ts";
import { until } from "../../kit/wait.ts";
import { PLANNER_SETTINGS } from "../../../plugins/stores/postgres/connection/connection-config.ts";
import { askAt, makePostgres } from "../../plugins/stores/postgres-under-test.ts";
import { asking, fill, Traffic } from "../ledger/ledger-size.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";

const DAY = 86_400_000;
/**
 * Thirteen months have ten million calls. One month has enough for a monthly report and for the
 * space of a call.
 */
const MONTH = 30.4 * DAY;
/** Documented values for ten million calls, on an idle machine. */
const MOST = {
  one_key_ms: 20,
  all_keys_ms: 10,
  all_keys_from_rows_ms: 300,
  bytes_a_call: 900,
  wal_a_call: 2_300,
  alone_ms: 1,
  /** Per thousand rows, from the middle on. */
  page_ms: 100,
};
/** Maximum number of rows per batch: a busy gateway collects about 64. */
const BATCH = 126;
const VERIFIED_A_SECOND = 100_000;

export async function fleetSize(of: {
  calls: number;
  months: number;
  /** Factor for times on a busy machine. */
  patience: number;
  seed: number;
  say: (line: string) => void;
}): Promise<RigResult> {
  const { say } = of;
  const wrong: string[] = [];
  const chanced = createChance(of.seed);
  await using postgres = await startPostgres({
    settings: ["shared_buffers=1GB", "max_wal_size=4GB", "work_mem=64MB"],
  });
  const url = await postgres.database();
  const made = await makePostgres(url);
  const { store } = made;
  try {
    await store.open({ instance: "filling" });
    // As maintenance created them, month by month.
    await postgres.sql(
      url,
      `SELECT tollgate.create_partition_1(now() - make_interval(months => i)) FROM generate_series(0, ${of.months}) i`,
    );
    const traffic = new Traffic(chanced, "r", of.months * MONTH);
    const logged = () =>
      postgres.sql(url, "SELECT pg_current_wal_insert_lsn() - '0/0'").then(Number);
    const before = await logged();
    await fill(store, traffic, { rows: 2 * of.calls, most: BATCH }, chanced, say);
    const wal = (await logged()) - before;
    const behind = async () =>
      Number(
        await postgres.sql(
          url,
          "SELECT c.next_seq - s.up_to + (SELECT count(*) FROM tollgate.batch WHERE seq IS NULL) FROM tollgate.chain c, tollgate.rollup_position s",
        ),
      );
    await until(async () => (await behind()) === 0);
    await postgres.sql(url, "ANALYZE");
    const ask = asking(store);
    const best = async (by: Parameters<typeof ask>[0], more?: object) => {
      const took: number[] = [];
      for (let i = 0; i < 5; i++) took.push((await ask(by, more)).ms);
      say(
        `usage --by ${by.join()} ${JSON.stringify(more ?? {})}: ${took.map(Math.round).join(", ")} ms`,
      );
      return Math.round(Math.min(...took) * 10) / 10;
    };
    const to = Math.floor(Date.now() / DAY) * DAY;
    const month = { from: to - 30 * DAY, to };
    const counts: Record<string, number> = {
      one_key_ms: await best(["day"], { ...month, key: "key7" }),
      all_keys_ms: await best(["key"], month),
      all_keys_from_rows_ms: await fromRows(url, month),
      // Days in other zones consist of half hours, except in a few zones with quarters: these are
      // summed from rows.
      berlin_ms: await best(["key", "day"], { ...month, tz: "Europe/Berlin" }),
      kathmandu_ms: await best(["key", "day"], { ...month, tz: "Asia/Kathmandu" }),
    };
    counts["page_ms"] = await paged(store, of.calls);
    const { sums } = await ask(["day"], { from: traffic.from });
    if (sums.total.costNano !== traffic.all || sums.total.calls !== traffic.calls)
      wrong.push(
        `total ${sums.total.costNano} of ${sums.total.calls}, written ${traffic.all} of ${traffic.calls}`,
      );
    const began = performance.now();
    for (const { path, message } of (await store.verify?.()) ?? [])
      wrong.push(`${path} ${message}`);
    const verified = Math.round(of.calls / ((performance.now() - began) / 1_000));
    const bytes = Number(await postgres.sql(url, "SELECT pg_database_size(current_database())"));
    counts["bytes_a_call"] = Math.round(bytes / of.calls);
    counts["wal_a_call"] = Math.round(wal / of.calls);
    counts["alone_ms"] = await alone(store, traffic);
    for (const [what, most] of Object.entries(MOST))
      if (counts[what]! > most * (what.endsWith("_ms") ? of.patience : 1))
        wrong.push(`${what} is ${counts[what]}, and ${most} at most is promised`);
    if (verified * of.patience < VERIFIED_A_SECOND)
      wrong.push(`${verified} calls are verified a second, and ${VERIFIED_A_SECOND} are promised`);
    return {
      wrong,
      counts: { calls: of.calls, months: of.months, ...counts, verified_a_second: verified },
      seed: of.seed,
    };
  } finally {
    await made.dispose();
  }
}

/**
 * An operator's own SQL report, as on the store's page. The store's own reports of full days and
 * half hours read no row.
 */
async function fromRows(url: string, { from, to }: { from: number; to: number }): Promise<number> {
  await using by = askAt(url);
  for (const setting of PLANNER_SETTINGS) await by.ask(`SET ${setting}`);
  const took: number[] = [];
  for (let i = 0; i < 5; i++) {
    const began = performance.now();
    await by.ask(
      `SELECT key, count(*) AS calls, sum(cost) / 1e9 AS usd FROM tollgate.entry
        WHERE kind <> 0 AND at >= ${from} AND at < ${to} GROUP BY key`,
    );
    took.push(performance.now() - began);
  }
  return Math.round(Math.min(...took));
}

/** A page of rows is found without a scan, however many there are. */
async function paged(store: Store, after: number): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < 5; i++) {
    const began = performance.now();
    await store.listEntries({}, { after: String(after), limit: 1_000 });
    took.push(performance.now() - began);
  }
  return Math.round(Math.min(...took) * 10) / 10;
}

/** Median duration of a single commit, without network and flush. */
async function alone(store: Store, traffic: Traffic): Promise<number> {
  const took: number[] = [];
  for (let i = 0; i < 400; i++) {
    const batch = traffic.batch(1, Date.now());
    const began = performance.now();
    await store.apply(batch);
    took.push(performance.now() - began);
  }
  return Math.round(took.toSorted((a, b) => a - b)[200]! * 100) / 100;
}

export const rig: Rig = {
  options: { calls: 10_000_000, months: 13, patience: 1, seed: Date.now() % 1e6 },
  run: ({ calls, months, patience, seed }, say) =>
    fleetSize({
      calls: Number(calls),
      months: Number(months),
      patience: Number(patience),
      seed: Number(seed),
      say,
    }),
};
