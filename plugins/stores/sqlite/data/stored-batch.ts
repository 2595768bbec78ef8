// The commits of the ledger file, and the search for rows by their position.
import type { DatabaseSync } from "node:sqlite";
import { decodeCommit, type CommitText, type LedgerRow } from "tollgate/store";

/** A commit in its stored form. */
export interface StoredBatch extends CommitText {
  /** Sequence number of the first entry. The others follow without gaps. */
  readonly first: number;
}

export const BATCH_COLUMNS = "first, instance, terms, rows";

/**
 * A reserve that was kept when its rows were compacted. `isSettled`: whether its settle was
 * compacted too.
 */
export interface RetainedBatch extends StoredBatch {
  readonly isSettled: boolean;
}

/** Reads the retained reserves of one attempt, or of all attempts. */
export function* readRetainedReserves(
  db: DatabaseSync,
  attempt?: string,
): Generator<RetainedBatch, void> {
  const all = db.prepare(
    "SELECT seq AS first, is_settled, instance, terms, rows FROM retained_reserve WHERE ?1 IS NULL OR attempt = ?1 ORDER BY seq",
  );
  for (const { is_settled, ...stored } of all.iterate(attempt ?? null))
    yield { ...(stored as unknown as StoredBatch), isSettled: is_settled === 1 };
}

/** Finds rows by their position. */
export interface RowLookup {
  /** Returns the commit that contains an entry. */
  batchOf(seq: number): StoredBatch | undefined;
  getRow(seq: number): LedgerRow | undefined;
  /**
   * Returns the sequence numbers of the reserve, the settle, and the adjustments of an attempt, if
   * they exist.
   */
  findCall(
    attempt: string,
  ): { reserve: number; settle: number | undefined; adjusts: number[] } | undefined;
  findReserve(attempt: string): LedgerRow | undefined;
}

export function createRowLookup(db: DatabaseSync): RowLookup {
  const holding = db.prepare(
    `SELECT ${BATCH_COLUMNS} FROM batch WHERE first <= ? AND first > coalesce((SELECT last FROM checkpoint), 0) ORDER BY first DESC LIMIT 1`,
  );
  const carried = db.prepare(
    "SELECT seq AS first, instance, terms, rows FROM retained_reserve WHERE seq = ?",
  );
  const call = db.prepare("SELECT first FROM call WHERE attempt = ?");
  const done = db.prepare("SELECT first FROM closed_call WHERE reserve = ?");
  const adjusts = db.prepare(
    "SELECT seq FROM adjustment WHERE attempt = ? AND seq > coalesce((SELECT last FROM checkpoint), 0) ORDER BY seq",
  );
  const at = (seq: number) =>
    (holding.get(seq) ?? carried.get(seq)) as unknown as StoredBatch | undefined;

  function find(first: unknown, attempt: string, kind: LedgerRow["kind"]): number | undefined {
    const stored = at(Number(first));
    const i = stored
      ? decodeCommit(stored).findIndex((row) => row.attempt === attempt && row.kind === kind)
      : -1;
    return i < 0 ? undefined : stored!.first + i;
  }

  function getRow(seq: number): LedgerRow | undefined {
    const stored = at(seq);
    return stored && decodeCommit(stored)[seq - stored.first];
  }
  const findReserve = (attempt: string): number | undefined => {
    const begun = call.get(attempt);
    return begun && find(begun["first"], attempt, "reserve");
  };

  return {
    batchOf: at,
    getRow,
    findCall(attempt) {
      const reserve = findReserve(attempt);
      if (reserve === undefined) return undefined;
      const ended = done.get(reserve);
      return {
        reserve,
        settle: ended && find(ended["first"], attempt, "settle"),
        adjusts: adjusts.all(attempt).map(({ seq }) => Number(seq)),
      };
    },
    findReserve: (attempt) => getRow(findReserve(attempt) ?? 0),
  };
}
