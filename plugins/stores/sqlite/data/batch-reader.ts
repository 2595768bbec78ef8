// Which commits may hold what a query asks for, in order, few at a time.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { LedgerQuery } from "tollgate/plugin";
import { CHAPTER_ENTRIES } from "./key-index.ts";
import {
  readRetainedReserves,
  BATCH_COLUMNS,
  type RowLookup,
  type StoredBatch,
} from "./stored-batch.ts";

/** Whether a caller waits for a reading; it is looked at between strides. */
export interface ReadToken {
  readonly isWanted: boolean;
}

/** Batches read in one go. */
const BATCHES_PER_READ = 16;
/** Entries that are looked through for a text in one go. */
const SEARCH_WINDOW = 65_536;
/** Here others may go first. */
export const YIELD = Symbol("pause");

/** Where batches begin: from, and up to. */
type BatchRange = readonly [number, number];
const END_OF_LEDGER = Number.MAX_SAFE_INTEGER;

const distinctRanges = (spans: readonly BatchRange[]): BatchRange[] =>
  [...new Map(spans.map((span) => [span[0], span])).values()].sort(([a], [b]) => a - b);

/** What the text of their batches must hold. What upstream calls a call has no order that an index could keep up with. */
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

  /** The newest entry's. */
  lastSeq(): number {
    return Number(this.#newest.get()?.["last"] ?? 0);
  }

  /** Those that may hold what is asked for, from the one that holds `from` on. */
  *matching(query: LedgerQuery, from: number): Generator<StoredBatch | typeof YIELD, void> {
    const [where, texts] = textConditions(query);
    const some = this.#db.prepare(
      `SELECT ${BATCH_COLUMNS} FROM batch WHERE first BETWEEN ? AND ? AND ${where} ORDER BY first LIMIT ${BATCHES_PER_READ}`,
    );
    const [since, till] = this.#rangeForTimes(query);
    const newest = this.lastSeq();
    // Reserves that are kept apart stand before all that is left.
    if (query.state !== "open")
      for (const stored of readRetainedReserves(this.#db, query.attempt))
        if (stored.first >= from) yield stored;
    const gone = Number(this.#checkpoint.get()?.["last"] ?? 0);
    const least = Math.max(this.#rows.batchOf(from)?.first ?? from, since, gone + 1);
    for (const [begin, end] of this.#candidateRanges(query)) {
      const last = Math.min(end, till, newest);
      for (let first = Math.max(begin, least); first <= last;) {
        const upTo = Math.min(last, first + SEARCH_WINDOW);
        // All at once: between two of these commits happen, and the log may be taken in.
        const found = some.all(first, upTo, ...texts) as unknown as StoredBatch[];
        yield* found;
        const whole = found.length < BATCHES_PER_READ;
        first = whole ? upTo + 1 : found.at(-1)!.first + 1;
        if (whole && first <= last) yield YIELD;
      }
    }
  }

  /** About how many entries its times are in. */
  estimatedEntries(query: LedgerQuery): number {
    const [first, last] = this.#rangeForTimes(query);
    return Math.min(last, this.lastSeq()) - Math.max(first, 0);
  }

  /** Those that begin from `first` on and before `end`, but for what is gone and not swept yet. */
  *between(first: number, end: number): Generator<StoredBatch, void> {
    for (let from = first; from < end;) {
      const found = this.#timeRange.all(from, end - 1) as unknown as StoredBatch[];
      yield* found;
      if (found.length < BATCHES_PER_READ) return;
      from = found.at(-1)!.first + 1;
    }
  }

  /** Where they may begin, in order. */
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

  /** Commits are nearly in the order of their times; what lies between the first and the last of them is looked at. */
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
