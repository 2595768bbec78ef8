// Exports this ledger to another store. Rows are read by their numbers. The rest is read when no
// gateway uses the ledger.
import {
  fail,
  type AccountRecord,
  type AuditEnd,
  type AuditEntry,
  type KeyRecord,
  type TransferredMeter,
  type LedgerExport,
  type TransferredRemainder,
  type TransferredRows,
  type Price,
  type Usage,
} from "tollgate/plugin";
import {
  fromJson,
  toMovedRow,
  decodeColumns,
  type ColumnRow,
  COMPARED_TOTALS,
  TRANSFER_PAGE_ROWS,
} from "tollgate/store";
import { readJobs } from "../membership/job-table.ts";
import { readCheckpoint } from "../retention/checkpoint.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { assignNumbers } from "../read/store-reads.ts";
import { unreportedSpendSql } from "../schema/budget-lease-sql.ts";
import { readTotals } from "../read/totals.ts";
import { nodeJoinSql, ROW_SELECT_SQL } from "../rows/row-sql.ts";

/**
 * @param end Closes the connection.
 */
export function openExport(sql: RunSql, schema: string, end: () => Promise<void>): LedgerExport {
  return {
    readRows: (after) => readRowsAfter(sql, schema, after),
    async stopWrites() {
      await sql({ text: "BEGIN" });
      await sql({
        text: "SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('lock_timeout', '5000', true)",
      });
      // A gateway that starts inserts a row here, so it waits.
      await sql({ text: `LOCK TABLE ${schema}.node IN SHARE MODE` });
      const [row] = await sql({
        text: `SELECT count(*) AS many FROM ${schema}.node WHERE state = 'live' AND last_heartbeat + lease > clock_timestamp()`,
      });
      if (row!["many"] === "0") return;
      await sql({ text: "ROLLBACK" });
      fail(
        "conflict",
        `Gateways are still using the database (${row!["many"]}). Stop them first.`,
        { code: "in_use" },
      );
    },
    readRemainder: () => readMetadata(sql, schema),
    [Symbol.asyncDispose]: end,
  };
}

async function readRowsAfter(sql: RunSql, schema: string, after: number): Promise<TransferredRows> {
  if (after === 0) {
    await assignNumbers(sql, schema);
    // Retained reserves whose settles are still rows of the ledger.
    const stayed = await sql({
      text: `SELECT ${ROW_SELECT_SQL} FROM ${schema}.checkpoint o, json_array_elements(o.text::json -> 'retainedReserves') k
        JOIN ${schema}.entry e ON e.node = (k ->> 0)::int AND e.n = (k ->> 1)::bigint AND e.i = (k ->> 2)::int ${nodeJoinSql(schema)}
        WHERE EXISTS (SELECT 1 FROM ${schema}.entry l WHERE l.attempt = e.attempt AND l.started_at = e.started_at AND l.kind = 1)`,
    });
    const next = ((await readCheckpoint(sql, schema))?.nextSeq ?? 1) - 1;
    if (stayed.length > 0)
      return {
        rows: stayed.map((row) => toMovedRow(decodeColumns(row as ColumnRow))),
        next,
        more: true,
      };
  }
  const rows = await sql({
    text: `SELECT b.seq + e.i AS seq, ${ROW_SELECT_SQL} FROM ${schema}.batch b JOIN ${schema}.entry e ON e.node = b.node AND e.n = b.n ${nodeJoinSql(schema)}
      WHERE b.seq >= coalesce((SELECT max(seq) FROM ${schema}.batch WHERE seq <= $1::bigint + 1), 0)
        AND b.seq + e.i > $1::bigint ORDER BY b.seq + e.i LIMIT $2`,
    values: [after, TRANSFER_PAGE_ROWS],
  });
  return {
    rows: rows.map((row) => toMovedRow(decodeColumns(row as ColumnRow))),
    next: Number(rows.at(-1)?.["seq"] ?? after),
    more: rows.length === TRANSFER_PAGE_ROWS,
  };
}

async function readMetadata(sql: RunSql, schema: string): Promise<TransferredRemainder> {
  await assignNumbers(sql, schema);
  const records = async <T>(table: string, order: string): Promise<T[]> =>
    (await sql({ text: `SELECT record FROM ${schema}.${table} ORDER BY ${order}` })).map(
      ({ record }) => fromJson<T>(record!),
    );
  const prices = await sql({ text: `SELECT hash, price FROM ${schema}.price ORDER BY hash` });
  const meters = await sql({
    text: `SELECT id, level + ${unreportedSpendSql(schema)} AS level, at, max, notified_level FROM ${schema}.meter m ORDER BY id`,
  });
  const open = await sql({
    text: `SELECT attempt, usage, cost FROM ${schema}.open_call WHERE usage IS NOT NULL ORDER BY attempt`,
  });
  const shared = await sql({
    text: `SELECT name, encode(value, 'base64') AS value FROM ${schema}.shared ORDER BY name`,
  });
  const [chain] = await sql({ text: `SELECT encode(head, 'hex') AS head FROM ${schema}.chain` });
  return {
    keys: await records<KeyRecord>("key", "sort_key"),
    accounts: await records<AccountRecord>("account", "id"),
    prices: prices.map(({ hash, price }) => [hash!, fromJson<Price>(price!)] as const),
    audit: await readAudit(sql, schema),
    meters: meters.map((row): TransferredMeter => ({
      id: row["id"]!,
      level: BigInt(row["level"]!),
      at: Number(row["at"]),
      max: BigInt(row["max"]!),
      notifiedLevel: BigInt(row["notified_level"]!),
    })),
    lastProgress: open.map(
      ({ attempt, usage, cost }) =>
        [
          attempt!,
          JSON.parse(usage!) as Usage,
          typeof cost === "string" ? BigInt(cost) : null,
        ] as const,
    ),
    jobs: await readJobs(sql, schema),
    shared: shared.map(
      ({ name, value }) => [name!, Uint8Array.from(Buffer.from(value!, "base64"))] as const,
    ),
    rollups: await readCheckpointSums(sql, schema),
    head: chain!["head"]!,
    totals: await readTotals(sql, schema, { by: COMPARED_TOTALS }),
  };
}

async function readAudit(sql: RunSql, schema: string): Promise<TransferredRemainder["audit"]> {
  const rows = await sql({ text: `SELECT entry, ended FROM ${schema}.audit ORDER BY seq` });
  return rows.map(
    ({ entry, ended }) =>
      [
        fromJson<AuditEntry>(entry!),
        typeof ended === "string" ? fromJson<AuditEnd>(ended) : undefined,
      ] as const,
  );
}

async function readCheckpointSums(
  sql: RunSql,
  schema: string,
): Promise<TransferredRemainder["rollups"]> {
  const base = await readCheckpoint(sql, schema);
  if (!base) return undefined;
  const sums = await sql({
    text: `SELECT quarter, text FROM ${schema}.checkpoint_rollup WHERE n <= $1 ORDER BY n`,
    values: [base.rollups],
  });
  return {
    rows: base.rows,
    since: base.firstAt,
    until: base.lastAt,
    sums: sums.map(({ quarter, text }) => [Number(quarter), text!] as const),
  };
}
