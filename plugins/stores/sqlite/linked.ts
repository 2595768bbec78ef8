// Commits in the order of the chain, a page at a time.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Stored } from "./stored.ts";

/** Commits that are read in one go. */
export const LINKED_PAGE = 32;

export interface Linked extends Stored {
  readonly id: number;
  readonly last: number;
  readonly hash: string;
}

/** Those behind a link, and behind an entry up to which all are gone. */
export const linkedAfter = (ledger: DatabaseSync): StatementSync =>
  ledger.prepare(
    "SELECT s.id, s.last, s.hash, b.first, b.instance, b.terms, b.rows " +
      `FROM segment s JOIN batch b ON b.first = s.first WHERE s.id > ? AND s.first > ? ORDER BY s.id LIMIT ${LINKED_PAGE}`,
  );
