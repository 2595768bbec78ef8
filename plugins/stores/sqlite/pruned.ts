// What rows came to that are gone: by quarters of an hour, without labels. It tells all that a report can ask of them, but for one row
// and for a stretch that begins or ends within a quarter: that counts where the quarter begins.
import type { DatabaseSync } from "node:sqlite";
import type { LedgerQuery } from "tollgate/plugin";
import { type Amounts, groupsOf, type RowFacts } from "tollgate/store";

/** Quarters that a report has to read by itself. */
interface Left {
  readonly quarters: ReadonlySet<number>;
}

const FARTHEST = 9e15;

/** `left`: of all else, sums that were made before have told already. */
export function* prunedSums(
  db: DatabaseSync,
  { attempt, upstreamId, state, from = -FARTHEST, to = FARTHEST }: LedgerQuery,
  left?: Left,
): Generator<readonly [RowFacts, Amounts, at: number], void> {
  if (attempt !== undefined || upstreamId !== undefined || state === "open") return;
  const used = "n <= coalesce((SELECT sums FROM base), 0)";
  const rows = left
    ? db
        .prepare(
          `SELECT quarter, text FROM sums WHERE quarter IN (SELECT value FROM json_each(?)) AND ${used}`,
        )
        .iterate(JSON.stringify([...left.quarters]))
    : db
        .prepare(`SELECT quarter, text FROM sums WHERE quarter >= ? AND quarter < ? AND ${used}`)
        .iterate(from, to);
  for (const row of rows) {
    const at = Number(row["quarter"]);
    if (at < from || at >= to) continue;
    for (const [facts, amounts] of groupsOf(String(row["text"]))) yield [facts, amounts, at];
  }
}
