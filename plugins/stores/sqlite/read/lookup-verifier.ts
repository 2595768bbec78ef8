// Verifies that the lookup tables find every entry, and that they contain no other rows.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { rowQualifier, type LedgerRow } from "tollgate/store";
import { chapterOf } from "../data/key-index.ts";
import { readCheckpoint } from "../data/checkpoint.ts";
import { parseNote } from "../data/chain-note.ts";
import type { StoredBatch } from "../data/stored-batch.ts";

interface SegmentTimes {
  readonly first: number;
  readonly min_at: number;
  readonly max_at: number;
}

export type AddProblem = (path: string, message: string) => void;

export class LookupVerifier {
  readonly #db: DatabaseSync;
  readonly #addProblem: AddProblem;
  readonly #call: StatementSync;
  readonly #closedCall: StatementSync;
  readonly #adjustment: StatementSync;
  readonly #keyIndex: StatementSync;
  /** Chain links in order. They are read in parallel with the commits, one link per commit. */
  readonly #links: Iterator<SegmentTimes, unknown>;
  /** Expected number of rows in each table. */
  readonly #rowCounts = { call: 0, closed_call: 0, adjustment: 0, key_index: 0 };
  /** The last compacted entry. Lookup rows of compacted entries may still exist. */
  readonly #compactedUpTo: number;
  #chapter = -1;
  #indexedKeys = new Set<string>();

  constructor(db: DatabaseSync, wrong: AddProblem) {
    this.#db = db;
    this.#addProblem = wrong;
    this.#compactedUpTo = readCheckpoint(db)?.last ?? 0;
    this.#call = db.prepare("SELECT 1 FROM call WHERE attempt = ? AND first = ?");
    this.#closedCall = db.prepare("SELECT 1 FROM closed_call WHERE reserve = ? AND first = ?");
    this.#adjustment = db.prepare(
      "SELECT 1 FROM adjustment WHERE attempt = ? AND qualifier = ? AND seq = ?",
    );
    this.#keyIndex = db.prepare("SELECT 1 FROM key_index WHERE key = ? AND chapter = ?");
    this.#links = db
      .prepare("SELECT first, min_at, max_at FROM segment ORDER BY id")
      .iterate() as unknown as Iterator<SegmentTimes, unknown>;
  }

  /** Verifies the time range of a commit, and the keys indexed for its chapter. */
  verifyCommit({ first, rows: text }: StoredBatch, rows: readonly LedgerRow[]): void {
    const noted = parseNote(text);
    const at = noted ? [noted.at] : rows.map((row) => row.at);
    const segment = this.#segmentOf(first);
    if (segment?.min_at !== Math.min(...at) || segment.max_at !== Math.max(...at))
      this.#addProblem(
        `/segment/${first}`,
        "The times of the segment differ from the times of its entries.",
      );
    if (this.#chapter !== chapterOf(first)) {
      this.#chapter = chapterOf(first);
      this.#indexedKeys = new Set();
    }
    for (const row of rows) {
      // In the form in which the file stores it: every unpaired surrogate becomes the same
      // replacement character.
      const key = row.key.toWellFormed();
      if (this.#indexedKeys.has(key)) continue;
      this.#indexedKeys.add(key);
      if (this.#isWholeChapter(this.#chapter)) this.#rowCounts.key_index++;
      if (!this.#keyIndex.get(key, this.#chapter))
        this.#addProblem(
          `/key_index/${key}`,
          `Entries of the key are missing from the index, starting with ${first}.`,
        );
    }
  }

  #segmentOf(first: number): SegmentTimes | undefined {
    for (;;) {
      const next = this.#links.next();
      if (next.done) return undefined;
      if (next.value.first >= first) return next.value;
    }
  }

  verifyReserve({ attempt }: LedgerRow, first: number): void {
    this.#rowCounts.call++;
    if (!this.#call.get(attempt, first))
      this.#addProblem(`/call/${attempt}`, "The index lacks the call's reserve.");
  }

  /**
   * Verifies that the settle of a call is found.
   * @param seq Sequence number of the reserve.
   */
  verifySettle({ attempt }: LedgerRow, seq: number, first: number): void {
    this.#rowCounts.closed_call++;
    if (!this.#closedCall.get(seq, first))
      this.#addProblem(`/closed_call/${attempt}`, "The index lacks the call's settle.");
  }

  verifyAdjustment(row: LedgerRow, seq: number): void {
    this.#rowCounts.adjustment++;
    if (!this.#adjustment.get(row.attempt, rowQualifier(row), seq))
      this.#addProblem(`/adjustment/${row.attempt}`, "The index lacks an adjustment.");
  }

  verifyCounts(): void {
    const { call, closed_call, adjustment, key_index } = this.#rowCounts;
    const apart = "IN (SELECT seq FROM retained_reserve WHERE is_settled = 0)";
    this.#compareCount(
      "call",
      call,
      `first > ? OR attempt IN (SELECT attempt FROM retained_reserve)`,
    );
    this.#compareCount("closed_call", closed_call, `reserve > ? OR reserve ${apart}`);
    this.#compareCount("adjustment", adjustment, "seq > ?");
    this.#compareCount("key_index", key_index, "chapter > ?", this.#partialChapter);
  }

  #compareCount(table: string, n: number, where: string, after = this.#compactedUpTo): void {
    const count = this.#db.prepare(`SELECT count(*) AS n FROM ${table} WHERE ${where}`);
    const there = count.get(after)!["n"];
    if (there !== n)
      this.#addProblem(`/${table}`, `The table has ${there} rows, but the entries require ${n}.`);
  }

  /** The chapter that a compaction split. It may index keys that occur only in its deleted part. */
  get #partialChapter(): number {
    return this.#compactedUpTo === 0 ? -1 : chapterOf(this.#compactedUpTo + 1);
  }
  #isWholeChapter(chapter: number): boolean {
    return chapter > this.#partialChapter;
  }
}
