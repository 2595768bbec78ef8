// What rows came to that are gone: by quarters of an hour, without labels. It tells all that a report can ask of them, but for one row
// and for a stretch that begins or ends within a quarter: that counts where the quarter begins.
import type { DatabaseSync } from "node:sqlite";
import type { LedgerQuery } from "tollgate/plugin";
import { type Amounts, groupsOf, type RowFacts } from "tollgate/store";

const FARTHEST = 9e15;

/** All of them that a report may ask for. */
export function* prunedSums(
  db: DatabaseSync,
  { attempt, upstreamId, state, from = -FARTHEST, to = FARTHEST }: LedgerQuery,
): Generator<readonly [RowFacts, Amounts, at: number], void> {
  if (attempt !== undefined || upstreamId !== undefined || state === "open") return;
  const rows = db.prepare(
    "SELECT quarter, text FROM sums WHERE quarter >= ? AND quarter < ? AND n <= (SELECT sums FROM base)",
  );
  for (const row of rows.iterate(from, to))
    for (const [facts, amounts] of groupsOf(String(row["text"])))
      yield [facts, amounts, Number(row["quarter"])];
}
