// The read operations of the store.
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
  toColumnText,
  decodeColumns,
  type ColumnRow,
} from "tollgate/store";
import { parseMeter } from "../write/slow-path.ts";
import { unreportedSpendSql } from "../schema/budget-lease-sql.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";
import { EMPTY_JOURNAL } from "../write/result-replay.ts";
import { readTotals } from "./totals.ts";
import { SqlParameters, whereClause } from "./where-clause.ts";
import { nodeJoinSql, ROW_SELECT_SQL } from "../rows/row-sql.ts";

type StoreReads = Pick<Store, "findKey" | "listKeys" | "listEntries" | "sumEntries"> &
  Required<Pick<Store, "listAccounts" | "readLimits" | "findPrice" | "readSize" | "listInstances">>;

/** Number of batches that are searched for a page. */
const BATCHES_PER_PAGE = 100;
/** Maximum number of batches that are numbered at a time. */
const BATCHES_PER_SEQUENCING = 10_000;
/**
 * Maximum number of batches that are added to rollups at a time. Even if every call has its own
 * terms, this finishes well within the statement timeout.
 */
const BATCHES_PER_ROLLUP = 500;

/** Assigns sequence numbers to committed entries, for listings. */
export async function assignNumbers(sql: RunSql, schema: string): Promise<void> {
  while ((await callSequencer(sql, schema, true)) === BATCHES_PER_SEQUENCING);
}

/**
 * Assigns sequence numbers in the background. Returns false if another gateway is doing so. This
 * gateway's last entries may then be missing.
 */
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

/** Adds numbered entries to the rollups, in strides. */
export async function updateRollups(sql: RunSql, schema: string): Promise<void> {
  for (let many = 1; many > 0;) {
    const [row] = await sql({
      text: `SELECT ${schema}.update_rollups_1($1) AS many`,
      values: [BATCHES_PER_ROLLUP],
    });
    many = Number(row?.["many"]);
  }
}

/**
 * @param sql Connection for reads that a client waits for.
 * @param reports Connection for reads that may take long.
 * @param now Returns the time at which limits are evaluated.
 */
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

/** Creates the reads of records. They return records in the form in which commands wrote them. */
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

/**
 * Returns whether the range is at most one day, so that the time index selects the rows. The oldest
 * batches of the ledger are rarely among them.
 */
const isWithinDay = ({ from, to }: LedgerQuery): boolean =>
  from !== undefined && to !== undefined && to - from <= DAY_MS;

/** Creates the reads of ledger rows and totals. */
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
    // Unless an index selects the rows, the next batches usually contain enough rows for the page.
    // Otherwise, all matching rows would be sorted for each page.
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
      rows.map((found) => toEntry(decodeColumns(found as ColumnRow), Number(found["seq"]))),
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
  `SELECT DISTINCT ON (w.id) w.id, w.info, w.state, floor(extract(epoch FROM w.last_heartbeat) * 1000)::bigint AS last_heartbeat_at, w.clock_ahead_ms,
          CASE WHEN w.seen_versions = f.keys || ' ' || f.accounts THEN 0
            ELSE floor(extract(epoch FROM clock_timestamp() - f.changed) * 1000)::bigint END AS lag,
          (SELECT count(*) FROM ${schema}.open_call o WHERE o.node = w.epoch) AS open
        FROM ${schema}.node w, ${schema}.change_counter f
        WHERE w.state = 'live' OR w.last_heartbeat > clock_timestamp() - interval '1 day' ORDER BY w.id, w.epoch DESC`;

function toInstanceState(row: Row): InstanceState {
  const {
    id,
    info,
    state,
    last_heartbeat_at: lastHeartbeatAt,
    clock_ahead_ms: clockAheadMs,
    lag,
    open,
  } = row;
  const more = {
    ...(typeof info === "string" && { info: JSON.parse(info) as InstanceInfo }),
    ...(typeof clockAheadMs === "string" && { clockAheadMs: Number(clockAheadMs) }),
    ...(state === "live" && { syncLagMs: Number(lag) }),
    openCalls: Number(open),
  };
  return {
    instance: id!,
    state: state as InstanceState["state"],
    lastHeartbeatAt: Number(lastHeartbeatAt),
    ...more,
  };
}

/** Returns the usage of limits, computed by the ledger rules from the current meters. */
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

/** Returns reached thresholds that are not marked as delivered. */
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

/** Returns the ID of the meter that a threshold belongs to. */
export const thresholdMeter = ({ scope, unit, per, max, resetsAt }: ThresholdReached): string =>
  mergeClaims([{ scope, unit, per, max, take: 0n }], resetsAt - 1, new Map())[0]!.meter.id;
