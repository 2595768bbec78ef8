// What rows of open calls say in labels now: a settle repeats it.
import type { OwnCall } from "./batch-plan.ts";
import type { RunSql } from "../connection/pipelined-connection.ts";
import { textArray } from "../connection/array-literal.ts";

export async function refreshLabels(
  sql: RunSql,
  schema: string,
  mine: ReadonlyMap<string, OwnCall>,
): Promise<void> {
  const attempts = [...mine].flatMap(([attempt, { row }]) =>
    Object.keys(row.labels).length > 0 ? [attempt] : [],
  );
  if (attempts.length === 0) return;
  const rows = await sql({
    text: `SELECT attempt, labels FROM ${schema}.entry WHERE attempt = ANY ($1::text[]) AND kind = 0 AND labels IS NOT NULL`,
    values: [textArray(attempts)],
  });
  for (const { attempt, labels } of rows) {
    const call = mine.get(attempt!);
    if (call) call.row.labels = JSON.parse(labels!) as typeof call.row.labels;
  }
}
