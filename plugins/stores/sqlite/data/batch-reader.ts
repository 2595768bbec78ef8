// Finds the commits that may contain the rows of a query, in order, a few at a time.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { LedgerQuery } from "tollgate/plugin";
import { CHAPTER_ENTRIES } from "./key-index.ts";
import {
  readRetainedReserves,
  BATCH_COLUMNS,
  type RowLookup,
  type StoredBatch,
} from "./stored-batch.ts";

/** Whether the caller is still waiting for a read. Readers check this between strides. */
export interface ReadToken {
  readonly isWanted: boolean;
}

/** Number of batches per read. */
const BATCHES_PER_READ = 16;
/** Number of entries that one search for a text scans. */
const SEARCH_WINDOW = 65_536;
/** Marks a point where the caller may let other work run. */
export const YIELD = Symbol("pause");

/** A range of first entries of batches. Both ends of the range are included. */
type BatchRange = readonly [number, number];
const END_OF_LEDGER = Number.MAX_SAFE_INTEGER;

const distinctRanges = (spans: readonly BatchRange[]): BatchRange[] =>
  [...new Map(spans.map((span) => [span[0], span])).values()].sort(([a], [b]) => a - b);

/**
 * Returns the SQL conditions on the text of batches. Upstream IDs have no order, so an index on
 * them would be too slow to update.
 */
function textConditions({
  key,
  account,
  upstreamId,
}: LedgerQuery): [where: string, texts: string[]] {
  const parts = ["1"];
  const texts: string[] = [];
  if (key !== undefined) {
    parts.push("instr(terms, ?)");
    texts.push(JSON.stringify(key));
  }
  if (account !== undefined) {
    parts.push("instr(terms, ?)");
    texts.push(JSON.stringify(account).slice(1, -1));
  }
  if (upstreamId !== undefined) {
    parts.push("instr(rows, ?)");
    texts.push(JSON.stringify(upstreamId));
  }
  return [parts.join(" AND "), texts];
}

export class BatchReader {
  readonly #db: DatabaseSync;
  readonly #rows: RowLookup;
  readonly #chapters: StatementSync;
  readonly #newest: StatementSync;
  readonly #timeRange: StatementSync;
  readonly #checkpoint: StatementSync;

  constructor(db: DatabaseSync, shelf: RowLookup) {
    this.#db = db;
    this.#rows = shelf;
    this.#chapters = db.prepare("SELECT chapter FROM key_index WHERE key = ? ORDER BY chapter");
    this.#timeRange = db.prepare(
      `SELECT ${BATCH_COLUMNS} FROM batch WHERE first BETWEEN ? AND ? AND first > coalesce((SELECT last FROM checkpoint), 0) ORDER BY first LIMIT ${BATCHES_PER_READ}`,
    );
    this.#newest = db.prepare("SELECT last, oldest_open FROM segment ORDER BY id DESC LIMIT 1");
    this.#checkpoint = db.prepare("SELECT last FROM checkpoint");
  }

  /** Returns the sequence number of the newest entry. */
  lastSeq(): number {
    return Number(this.#newest.get()?.["last"] ?? 0);
  }

  /**
   * Yields the batches that may contain matching rows, starting with the batch that contains entry
   * `from`.
   */
  *matching(query: LedgerQuery, from: number): Generator<StoredBatch | typeof YIELD, void> {
    const [where, texts] = textConditions(query);
    const some = this.#db.prepare(
      `SELECT ${BATCH_COLUMNS} FROM batch WHERE first BETWEEN ? AND ? AND ${where} ORDER BY first LIMIT ${BATCHES_PER_READ}`,
    );
    const [since, till] = this.#rangeForTimes(query);
    const newest = this.lastSeq();
    // Retained reserves precede all remaining rows.
    if (query.state !== "open")
      for (const stored of readRetainedReserves(this.#db, query.attempt))
        if (stored.first >= from) yield stored;
    const gone = Number(this.#checkpoint.get()?.["last"] ?? 0);
    const least = Math.max(this.#rows.batchOf(from)?.first ?? from, since, gone + 1);
    for (const [begin, end] of this.#candidateRanges(query)) {
      const last = Math.min(end, till, newest);
      for (let first = Math.max(begin, least); first <= last;) {
        const upTo = Math.min(last, first + SEARCH_WINDOW);
        // Reads all rows of the page in one call, because commits and WAL checkpoints can happen
        // between two calls.
        const found = some.all(first, upTo, ...texts) as unknown as StoredBatch[];
        yield* found;
        const whole = found.length < BATCHES_PER_READ;
        first = whole ? upTo + 1 : found.at(-1)!.first + 1;
        if (whole && first <= last) yield YIELD;
      }
    }
  }

  /** Returns the approximate number of entries in the time range of the query. */
  estimatedEntries(query: LedgerQuery): number {
    const [first, last] = this.#rangeForTimes(query);
    return Math.min(last, this.lastSeq()) - Math.max(first, 0);
  }

  /**
   * Yields batches whose first entry is at least `first` and below `end`. Skips compacted batches
   * that are not deleted yet.
   */
  *between(first: number, end: number): Generator<StoredBatch, void> {
    for (let from = first; from < end;) {
      const found = this.#timeRange.all(from, end - 1) as unknown as StoredBatch[];
      yield* found;
      if (found.length < BATCHES_PER_READ) return;
      from = found.at(-1)!.first + 1;
    }
  }

  /** Returns the ranges where matching batches may begin, in order. */
  #candidateRanges({ attempt, key, state }: LedgerQuery): Iterable<BatchRange> {
    const at = (seq: number): BatchRange => {
      const { first } = this.#rows.batchOf(seq)!;
      return [first, first];
    };
    if (attempt !== undefined) {
      const { reserve, settle, adjusts } = this.#rows.findCall(attempt) ?? { adjusts: [] };
      const seqs = [reserve, settle, ...adjusts].filter((seq) => seq !== undefined);
      return distinctRanges(seqs.map(at));
    }
    if (state === "open") {
      const low = Number(this.#newest.get()?.["oldest_open"] ?? 0);
      const listed = this.#db
        .prepare("SELECT seq FROM open_call WHERE seq < ? ORDER BY seq")
        .all(low);
      return [...distinctRanges(listed.map(({ seq }) => at(Number(seq)))), [low, END_OF_LEDGER]];
    }
    if (key !== undefined)
      return this.#chapters.all(key).map(({ chapter }): BatchRange => {
        const first = Number(chapter) * CHAPTER_ENTRIES;
        return [first, first + CHAPTER_ENTRIES - 1];
      });
    return [[-END_OF_LEDGER, END_OF_LEDGER]];
  }

  /**
   * Returns the range of batches that may contain entries of these times. Commits are nearly in
   * time order, so everything between the first and the last match is read.
   */
  #rangeForTimes({ from, to }: LedgerQuery): BatchRange {
    if (from === undefined && to === undefined) return [-END_OF_LEDGER, END_OF_LEDGER];
    const { first, last } = this.#db
      .prepare(
        "SELECT min(first) AS first, max(first) AS last FROM segment WHERE max_at >= ? AND min_at < ?",
      )
      .get(from ?? -END_OF_LEDGER, to ?? END_OF_LEDGER)!;
    return first === null ? [END_OF_LEDGER, -END_OF_LEDGER] : [Number(first), Number(last)];
  }
}
