// Helpers for moving a ledger from one store to another.
import { fail, type LedgerTotal } from "../../plugin/index.ts";
import { toJson } from "../bigint-json.ts";
import type { LedgerRow } from "../ledger-row.ts";

/** Dimensions by which the totals of both stores must be equal. */
export const COMPARED_TOTALS = ["key", "model", "state", "price"] as const;

/** Number of rows per page of a transfer. */
export const TRANSFER_PAGE_ROWS = 5_000;

/** Yields runs of consecutive rows from the same instance. */
export function* splitByInstance(
  rows: readonly LedgerRow[],
): Generator<readonly LedgerRow[], void> {
  for (let from = 0, to = 1; from < rows.length; to++)
    if (rows[to]?.instance !== rows[from]!.instance) {
      yield rows.slice(from, to);
      from = to;
    }
}

/** Rejects an import whose totals differ from the totals of its source. */
export function assertSameTotals(
  own: readonly LedgerTotal[],
  source: readonly LedgerTotal[],
): void {
  if (toJson(own) !== toJson(source))
    fail(
      "invalid",
      `The totals of the imported rows differ from the source: ${own.length} groups here, ${source.length} in the source.`,
      { code: "other_sums" },
    );
}
