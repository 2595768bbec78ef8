// Recovers calls that dead nodes left open.
import type { StoreCommand } from "tollgate/plugin";
import {
  recoveredSettle,
  recoveryTime,
  type LedgerRow,
  type Progress,
  decodeColumns,
  type ColumnRow,
} from "tollgate/store";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";
import { nodeJoinSql, ROW_SELECT_SQL } from "../rows/row-sql.ts";

/** Maximum number of calls settled in one batch. */
const CALLS_PER_BATCH = 500;

/** Settle commands, and the number of calls per instance. */
export interface RecoveredCalls {
  readonly commands: readonly StoreCommand[];
  readonly countByInstance: ReadonlyMap<string, number>;
}

/** Returns settle commands for open calls of these nodes, up to one batch. Jobs outlive their nodes. */
export async function recoverDeadCalls(
  sql: RunSql,
  schema: string,
  epochs: readonly string[],
  now: number,
): Promise<RecoveredCalls> {
  const by = new Map<string, number>();
  if (epochs.length === 0) return { commands: [], countByInstance: by };
  const rows = await sql({
    text: `SELECT o.usage AS reported_usage, o.cost AS costs, ${ROW_SELECT_SQL}
      FROM ${schema}.open_call o JOIN ${schema}.entry e ON e.attempt = o.attempt AND e.started_at = o.started_at AND e.kind = 0 ${nodeJoinSql(schema)}
      WHERE o.node = ANY ($1::int[]) AND o.job IS DISTINCT FROM o.attempt ORDER BY o.attempt LIMIT $2`,
    values: [textArray(epochs), CALLS_PER_BATCH],
  });
  const open = rows.map(parseOpenCall);
  for (const { row } of open) by.set(row.instance, (by.get(row.instance) ?? 0) + 1);
  const at = recoveryTime(open, now);
  return {
    commands: open.map(({ row, progress }) => recoveredSettle(row, progress, at)),
    countByInstance: by,
  };
}

function parseOpenCall(found: Row): { row: LedgerRow; progress: Progress | undefined } {
  const { reported_usage: usage, costs } = found;
  return {
    row: decodeColumns(found as ColumnRow),
    progress:
      typeof usage === "string"
        ? { usage: JSON.parse(usage), costNano: typeof costs === "string" ? BigInt(costs) : null }
        : undefined,
  };
}
