// Reads the totals of compacted rows. They are kept per quarter of an hour, without labels. Reports
// can use them for everything except single rows. A range that cuts a quarter counts the quarter by
// its start.
import type { DatabaseSync } from "node:sqlite";
import type { LedgerQuery } from "tollgate/plugin";
import { type RunningTotal, parseRollupGroups, type RowDimensions } from "tollgate/store";

const MAX_TIME_MS = 9e15;

/** Yields all checkpoint rollups that a query may include. */
export function* checkpointRollups(
  db: DatabaseSync,
  { attempt, upstreamId, state, from = -MAX_TIME_MS, to = MAX_TIME_MS }: LedgerQuery,
): Generator<readonly [RowDimensions, RunningTotal, at: number], void> {
  if (attempt !== undefined || upstreamId !== undefined || state === "open") return;
  const rows = db.prepare(
    "SELECT quarter, text FROM checkpoint_rollup WHERE quarter >= ? AND quarter < ? AND n <= (SELECT rollups FROM checkpoint)",
  );
  for (const row of rows.iterate(from, to))
    for (const [facts, amounts] of parseRollupGroups(String(row["text"])))
      yield [facts, amounts, Number(row["quarter"])];
}
