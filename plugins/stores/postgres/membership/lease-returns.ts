// Returns the budget leases of gateways that have ended. Every gateway does this, even if it uses
// no leases itself.
import type { ThresholdReached } from "tollgate/plugin";
import { createLedgerRules, createMeter } from "tollgate/store";
import { textArray } from "../connection/array-literal.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { EMPTY_JOURNAL } from "../write/result-replay.ts";

/**
 * Returns all leases of a node, or those on the given meters. The result has a row for each lease,
 * with the state of its meter.
 */
export const returnLeases = (
  sql: RunSql,
  schema: string,
  node: string,
  ids?: readonly string[],
): Promise<readonly Row[]> =>
  sql({
    text: `SELECT id, level, max, peak FROM ${schema}.return_lease_1($1, $2::text[])`,
    values: [node, ids === undefined ? null : textArray(ids)],
  });

/** Returns the leases of dead nodes, except those that may be spent in offline mode. */
export const returnDeadLeases = (sql: RunSql, schema: string): Promise<readonly Row[]> =>
  sql({ text: `SELECT id, level, max, peak FROM ${schema}.return_dead_leases_1()` });

/**
 * Returns the thresholds that were reached when lease spending was added to meters. `peak` is the
 * highest level before.
 */
export function reachedThresholdsIn(rows: readonly Row[]): readonly ThresholdReached[] {
  const book = createLedgerRules(EMPTY_JOURNAL, () => "");
  for (const { id, level, max, peak } of rows)
    book.loadMeter({
      ...createMeter(id!),
      level: BigInt(level!),
      max: BigInt(max!),
      notifiedLevel: BigInt(peak!),
    });
  return book.undeliveredThresholds();
}
