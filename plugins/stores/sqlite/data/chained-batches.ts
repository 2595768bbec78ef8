// Reads commits in chain order, a page at a time.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { StoredBatch } from "./stored-batch.ts";

/** Number of commits per page. */
export const CHAINED_PAGE_SIZE = 32;

export interface ChainedBatch extends StoredBatch {
  readonly id: number;
  readonly last: number;
  readonly hash: string;
}

/** Prepares the query for commits after a chain link and after the last compacted entry. */
export const prepareChainedAfter = (ledger: DatabaseSync): StatementSync =>
  ledger.prepare(
    "SELECT s.id, s.last, s.hash, b.first, b.instance, b.terms, b.rows " +
      `FROM segment s JOIN batch b ON b.first = s.first WHERE s.id > ? AND s.first > ? ORDER BY s.id LIMIT ${CHAINED_PAGE_SIZE}`,
  );
