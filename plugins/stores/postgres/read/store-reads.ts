// What is asked of the store and changes nothing.
import type {
  AccountRecord,
  InstanceInfo,
  InstanceState,
  KeyRecord,
  Limit,
  LimitUsage,
  LedgerQuery,
  ThresholdReached,
  Price,
  Store,
} from "tollgate/plugin";
import {
  mergeClaims,
  createLedgerRules,
  fromJson,
  keyCursor,
  toPage,
  pageSize,
  toEntry,
} from "tollgate/store";
import { parseMeter } from "../write/slow-path.ts";
import { unreportedSpendSql } from "../schema/budget-lease-sql.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";
import { EMPTY_JOURNAL } from "../write/result-replay.ts";
import {
  toColumnText,
  nodeJoinSql,
  decodeRow,
  ROW_SELECT_SQL,
  type StoredRow,
} from "../rows/row-codec.ts";
import { readTotals } from "./totals.ts";
import { SqlParameters, whereClause } from "./where-clause.ts";

type StoreReads = Pick<Store, "findKey" | "listKeys" | "listEntries" | "sumEntries"> &
  Required<Pick<Store, "listAccounts" | "readLimits" | "findPrice" | "readSize" | "listInstances">>;

/** Batches that are looked through for a page. */
const BATCHES_PER_PAGE = 100;
/** Batches that get their numbers at once. */
const BATCHES_PER_SEQUENCING = 10_000;
/** Batches that are added up at once: also where each call has terms of its own it is over long before a statement may be. */
const BATCHES_PER_ROLLUP = 500;

/** Numbers what was committed: entries are listed by these. */
export async function assignNumbers(sql: RunSql, schema: string): Promise<void> {
  while ((await callSequencer(sql, schema, true)) === BATCHES_PER_SEQUENCING);
}

/** In the background. False: another gateway does it just now, and what this one has written last may not be in it. */
export async function assignNumbersSoon(sql: RunSql, schema: string): Promise<boolean> {
  const many = await callSequencer(sql, schema, false);
  if (many === BATCHES_PER_SEQUENCING) await assignNumbers(sql, schema);
  return many !== null;
}

async function callSequencer(sql: RunSql, schema: string, wait: boolean): Promise<number | null> {
  const [row] = await sql({
    text: `SELECT ${schema}.assign_sequence_1($1, $2) AS many`,
    values: [BATCHES_PER_SEQUENCING, String(wait)],
  });
  const many = row!["many"] ?? null;
  return many === null ? null : Number(many);
}

/** Adds numbered entries to the sums of their days, a stride at a time. */
export async function updateRollups(sql: RunSql, schema: string): Promise<void> {
  for (let many = 1; many > 0;) {
    const [row] = await sql({
      text: `SELECT ${schema}.update_rollups_1($1) AS many`,
      values: [BATCHES_PER_ROLLUP],
    });
    many = Number(row?.["many"]);
  }
}

/** `ask`: for what a client waits for. `reports`: for what may take its time. `now`: the moment that a limit is counted at. */
export const createStoreReads = (
  sql: RunSql,
  reports: RunSql,
  schema: string,
  now: (at: number) => number,
  numbered: () => Promise<void>,
): StoreReads => ({
  ...createRecordReads(sql, schema),
  ...createLedgerReads(reports, schema, numbered),
  readLimits: (limits, at) => readLimitUsage(sql, schema, limits, now(at)),
  async listInstances() {
    const rows = await sql({ text: instancesSql(schema) });
    return rows.map(toInstanceState);
  },
});

/** What commands have put there, whole. */
const createRecordReads = (
  sql: RunSql,
  schema: string,
): Pick<StoreReads, "findKey" | "listKeys" | "listAccounts" | "findPrice"> => ({
  async findKey(digest) {
    const [row] = await sql({
      text: `SELECT record FROM ${schema}.key WHERE digest = $1`,
      values: [toColumnText(digest)],
    });
    return row && fromJson<KeyRecord>(row["record"]!);
  },
  async listKeys(page) {
    const size = pageSize(page);
    const rows = await sql({
      text: `SELECT record FROM ${schema}.key WHERE sort_key > $1 ORDER BY sort_key LIMIT $2`,
      values: [toColumnText(page?.after ?? ""), size + 1],
    });
    return toPage(
      rows.map(({ record }) => fromJson<KeyRecord>(record!)),
      size,
      keyCursor,
    );
  },
  async listAccounts(page) {
    const size = pageSize(page);
    const rows = await sql({
      text: `SELECT record FROM ${schema}.account WHERE id > $1 ORDER BY id LIMIT $2`,
      values: [toColumnText(page?.after ?? ""), size + 1],
    });
    return toPage(
      rows.map(({ record }) => fromJson<AccountRecord>(record!)),
      size,
      ({ id }) => id,
    );
  },
  async findPrice(hash) {
    const [row] = await sql({
      text: `SELECT price FROM ${schema}.price WHERE hash = $1`,
      values: [toColumnText(hash)],
    });
    return row && fromJson<Price>(row["price"]!);
  },
});

const DAY_MS = 86_400_000;

/** The index on times names the rows of a day at most; the ledger's first batches are hardly ever in it. */
const isWithinDay = ({ from, to }: LedgerQuery): boolean =>
  from !== undefined && to !== undefined && to - from <= DAY_MS;

/** Rows, and what they come to. */
const createLedgerReads = (
  reports: RunSql,
  schema: string,
  numbered: () => Promise<void>,
): Pick<StoreReads, "listEntries" | "sumEntries" | "readSize"> => ({
  async listEntries(query, page, of) {
    await numbered();
    of?.signal?.throwIfAborted();
    const size = pageSize(page);
    const values = new SqlParameters();
    const after = `${values.add(Number(page?.after ?? 0))}::bigint`;
    const conditions = `b.seq + e.i > ${after} AND ${whereClause(query, schema, values)}`;
    const most = values.add(size + 1);
    const from = `seq >= coalesce((SELECT max(seq) FROM ${schema}.batch WHERE seq <= ${after} + 1), 0)`;
    const listed = `SELECT b.seq + e.i AS seq, ${ROW_SELECT_SQL} FROM`;
    // The batches that come next fill most pages, where no index names the rows. All that there are would be put in order for each.
    const few = (query.attempt ?? query.upstreamId) !== undefined || isWithinDay(query);
    const near = few
      ? []
      : await reports({
          text: `${listed} (SELECT node, n, seq FROM ${schema}.batch WHERE ${from} ORDER BY seq LIMIT ${BATCHES_PER_PAGE} + 2 * ${most}) b
        CROSS JOIN LATERAL (SELECT * FROM ${schema}.entry WHERE node = b.node AND n = b.n OFFSET 0) e ${nodeJoinSql(schema)}
        WHERE ${conditions} ORDER BY b.seq, e.i LIMIT ${most}`,
          values: values.all,
        });
    const rows =
      near.length > size
        ? near
        : await reports({
            text: `${listed} ${schema}.batch b JOIN ${schema}.entry e ON e.node = b.node AND e.n = b.n ${nodeJoinSql(schema)}
              WHERE b.${from} AND ${conditions} ORDER BY b.seq + e.i LIMIT ${most}`,
            values: values.all,
          });
    return toPage(
      rows.map((found) => toEntry(decodeRow(found as StoredRow), Number(found["seq"]))),
      size,
      ({ seq }) => String(seq),
    );
  },
  async sumEntries(query, of) {
    of?.signal?.throwIfAborted();
    return readTotals(reports, schema, query);
  },
  async readSize() {
    const [row] = await reports({
      text: `SELECT (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = $1 AND c.relkind = 'r') AS bytes,
        (SELECT e.at FROM (SELECT node, n FROM ${schema}.batch WHERE entries > 0 AND seq IS NOT NULL ORDER BY seq LIMIT 1) b
          JOIN ${schema}.entry e ON e.node = b.node AND e.n = b.n ORDER BY e.i LIMIT 1) AS oldest`,
      values: [schema],
    });
    const oldest = row?.["oldest"];
    return {
      bytes: Number(row?.["bytes"] ?? 0),
      ...(oldest != null && { oldestAt: Number(oldest) }),
    };
  },
});

const instancesSql = (schema: string): string =>
  `SELECT DISTINCT ON (w.id) w.id, w.info, w.state, floor(extract(epoch FROM w.last_heartbeat) * 1000)::bigint AS heard, w.clock_ahead_ms,
          CASE WHEN w.seen_versions = f.keys || ' ' || f.accounts THEN 0
            ELSE floor(extract(epoch FROM clock_timestamp() - f.changed) * 1000)::bigint END AS lag,
          (SELECT count(*) FROM ${schema}.open_call o WHERE o.node = w.epoch) AS open
        FROM ${schema}.node w, ${schema}.change_counter f
        WHERE w.state = 'live' OR w.last_heartbeat > clock_timestamp() - interval '1 day' ORDER BY w.id, w.epoch DESC`;

function toInstanceState(row: Row): InstanceState {
  const { id, info, state, heard, clock_ahead_ms: clockAheadMs, lag, open } = row;
  const more = {
    ...(typeof info === "string" && { info: JSON.parse(info) as InstanceInfo }),
    ...(typeof clockAheadMs === "string" && { clockAheadMs: Number(clockAheadMs) }),
    ...(state === "live" && { syncLagMs: Number(lag) }),
    openCalls: Number(open),
  };
  return {
    instance: id!,
    state: state as InstanceState["state"],
    lastHeartbeatAt: Number(heard),
    ...more,
  };
}

/** The book's own numbers, of meters as they are. */
async function readLimitUsage(
  sql: RunSql,
  schema: string,
  limits: readonly Limit[],
  at: number,
): Promise<readonly LimitUsage[]> {
  const ids = mergeClaims(
    limits.map((limit) => ({ ...limit, take: 0n })),
    at,
    new Map(),
  ).map(({ meter }) => meter.id);
  const rows = await sql({
    text: `SELECT id, level + ${unreportedSpendSql(schema)} AS level, reserved - ${unreportedSpendSql(schema)} AS reserved, at, max, peak, notified_level
      FROM ${schema}.meter m WHERE id = ANY ($1::text[])`,
    values: [textArray(ids)],
  });
  const book = createLedgerRules(EMPTY_JOURNAL, () => "");
  for (const row of rows) book.loadMeter(parseMeter(row).meter);
  return book.limitUsage(limits, at);
}

/** Crossings of which nothing says that they were told. */
export async function readUndeliveredThresholds(
  sql: RunSql,
  schema: string,
): Promise<readonly ThresholdReached[]> {
  const rows = await sql({
    text: `SELECT id, level, reserved, at, max, peak, notified_level FROM ${schema}.meter WHERE level > notified_level AND max > 0 ORDER BY id`,
  });
  const book = createLedgerRules(EMPTY_JOURNAL, () => "");
  for (const row of rows) book.loadMeter(parseMeter(row).meter);
  return book.undeliveredThresholds();
}

/** The meter that a crossing is of. */
export const thresholdMeter = ({ scope, unit, per, max, resetsAt }: ThresholdReached): string =>
  mergeClaims([{ scope, unit, per, max, take: 0n }], resetsAt - 1, new Map())[0]!.meter.id;
