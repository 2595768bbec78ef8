// What rows came to that are gone: by quarters of an hour, without labels. It tells all that a report can ask of them, but for one row
// and for a stretch that begins or ends within a quarter: that counts where the quarter begins.
import type { DatabaseSync } from "node:sqlite";
import type { LedgerQuery } from "tollgate/plugin";
import { type RunningTotal, parseRollupGroups, type RowDimensions } from "tollgate/store";

const MAX_TIME_MS = 9e15;

/** All of them that a report may ask for. */
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
