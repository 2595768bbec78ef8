// Implements the journal of the ledger rules as SQL statements. All statements run in the writer's
// transaction, most of them once per commit. The rows of a commit are assembled as text and stored
// in one piece.
import type { DatabaseSync } from "node:sqlite";
import type { KeyRecord, Price, StoreCommand } from "tollgate/plugin";
import {
  type CallRows,
  type LedgerJournal,
  type LedgerRow,
  type Meter,
  rowQualifier,
  type OpenCall,
  type OpenCalls,
  type Progress,
  type MeterAmount,
  needsWrite,
  toJson,
  commitHash,
  decodeCommit,
  serializeTerms,
  encodeLineAmounts,
  MeterAmountEncoder,
  encodeAdjust,
  encodeIdentity,
} from "tollgate/store";
import { readHead, type ChainHead } from "../data/chain.ts";
import { createLowWaterMark, type LowWaterMark } from "../data/low-water-mark.ts";
import { createKeyIndex, type KeyIndex } from "../data/key-index.ts";
import { readOpenCalls } from "../data/open-calls.ts";
import { createRecordRepository, type RecordRepository } from "../data/record-repository.ts";
import { createRowLookup, type RowLookup, type StoredBatch } from "../data/stored-batch.ts";
import { encodeNote, type ChainNote } from "../data/chain-note.ts";
import { createSaltedTexts, type SaltedTexts } from "../data/salted-text.ts";
import { createHashedTerms, type HashedTerms } from "../data/hashed-terms.ts";
import {
  createEncodedTerms,
  type EncodedReserve,
  type EncodedSettle,
} from "../data/batch-codec.ts";

/** An open call, with the data that its settle repeats. */
export interface StoredCall extends OpenCall {
  readonly terms: HashedTerms;
  readonly identity: string;
  readonly hold: string;
  readonly seq: number;
  /** The first entry of the commit that contains the reserve. */
  readonly firstSeq: number;
  /** Whether table `open_call` lists the call. */
  isListed: boolean;
  lineAmounts?: readonly bigint[] | undefined;
}

/** An open call that was found when the ledger was opened. */
export interface FoundOpenCall {
  call: StoredCall;
  row: LedgerRow;
  progress: Progress | undefined;
}

/**
 * Maximum number of entries that the next owner reads to find open calls. Calls that are open for
 * longer are listed.
 */
const MAX_RECOVERY_ENTRIES = 16_384;
/** Maximum number of calls that a batch indexes with one statement each. */
const MAX_SINGLE_INSERTS = 8;

type CommandOf<D extends StoreCommand["do"]> = Extract<StoreCommand, { do: D }>;

export class SqliteJournal implements LedgerJournal<EncodedReserve, EncodedSettle, StoredCall> {
  /**
   * Whether each attempt is looked up before its reserve is added. If false, the index rejects a
   * duplicate when the batch is sealed.
   */
  checksDuplicates = false;
  readonly #db: DatabaseSync;
  #instance: string;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #rowLookup: RowLookup;
  readonly #keyIndex: KeyIndex;
  readonly #saltedTexts: SaltedTexts;
  readonly #lowWaterMark: LowWaterMark = createLowWaterMark();
  readonly accounts: RecordRepository;
  #head: ChainHead;
  #sealedHead: ChainHead;
  // State of the current batch.
  #rows: string[] = [];
  #terms: HashedTerms[] = [];
  #batchToken = {};
  readonly #meterAmounts = new MeterAmountEncoder();
  #minTime = Infinity;
  #maxTime = -Infinity;
  #openedInBatch: StoredCall[] = [];
  #closedInBatch: StoredCall[] = [];
  #listedInBatch: StoredCall[] = [];
  #closedReserves: number[] = [];
  /** Amounts of lines before this batch, by job. */
  #lineAmountsBefore = new Map<StoredCall, readonly bigint[] | undefined>();

  constructor(db: DatabaseSync, instance: string) {
    this.#db = db;
    this.#instance = instance;
    this.#statements = prepareStatements(db);
    this.#rowLookup = createRowLookup(db);
    this.#keyIndex = createKeyIndex(db);
    this.#saltedTexts = createSaltedTexts(db);
    this.#head = this.#sealedHead = readHead(db);
    this.accounts = createRecordRepository(db, this.#saltedTexts);
  }

  reserve(c: EncodedReserve, taken: readonly MeterAmount[]): StoredCall | undefined {
    if (this.checksDuplicates && this.hasReserve(c.attempt)) return undefined;
    const first = this.#head.seq + 1;
    const { attempt, identity, hold } = c;
    const terms = this.#saltedTexts.hashTerms(c.terms);
    const seq = this.#nextSeq();
    const call: StoredCall = {
      attempt,
      meterAmounts: taken,
      terms,
      identity,
      hold,
      seq,
      firstSeq: first,
      isListed: false,
      ...(c.job && { job: c.job.attempt }),
    };
    const takes = this.#meterAmounts.encode(taken, this.#rows.length);
    this.#addRow(c.at, `["r",${c.at},${identity},${this.#termsIndex(terms)},${hold},${takes}]`);
    this.#openedInBatch.push(call);
    this.#lowWaterMark.beginCommit(first);
    this.#lowWaterMark.addOpenCall(first);
    return call;
  }

  settle(call: StoredCall, c: EncodedSettle): void {
    const place = this.#termsIndex(call.terms);
    this.#addRow(c.at, `["s",${c.at},${call.identity},${place},${call.hold},${c.text}]`);
    this.#closedInBatch.push(call);
    if (call.isListed) this.#statements.unlist.run(call.attempt);
    else this.#closeInLowWaterMark(call);
  }

  /** Adds an adjustment from another store. Its labels are plain text. */
  adjustImported = (row: LedgerRow): boolean =>
    this.adjust(row, this.#saltedTexts.hashTerms(createEncodedTerms(serializeTerms(row))));

  adjust(row: LedgerRow, terms = createHashedTerms(serializeTerms(row))): boolean {
    const { attempt } = row;
    if (this.#statements.adjustment.run(attempt, rowQualifier(row), this.#nextSeq()).changes === 0)
      return false;
    this.#addRow(Math.floor(row.at), encodeAdjust(row, this.#termsIndex(terms)));
    return true;
  }

  hasReserve(attempt: string): boolean {
    return (
      this.#openedInBatch.some((call) => call.attempt === attempt) ||
      this.#statements.known.get(attempt) !== undefined
    );
  }

  closedCall(attempt: string): CallRows | undefined {
    const has = (call: StoredCall): boolean => call.attempt === attempt;
    const mine =
      this.#openedInBatch.some(has) || this.#closedInBatch.some(has) ? this.#pendingRows() : [];
    const there = this.#rowLookup.findCall(attempt);
    const of = (kind: LedgerRow["kind"], seq: number | undefined): LedgerRow | undefined =>
      seq === undefined
        ? mine.find((row) => row.attempt === attempt && row.kind === kind)
        : this.#rowLookup.getRow(seq);
    const reserve = of("reserve", there?.reserve);
    return reserve && { reserve, settle: of("settle", there?.settle) };
  }

  progress(call: StoredCall, { usage, costNano = null }: CommandOf<"progress">): void {
    this.#saveProgress(call, { usage, costNano });
  }

  /** Lists the job, because the next owner cannot read as far back as its first line. */
  setLineAmounts(job: StoredCall, amounts: readonly bigint[]): void {
    if (!this.#lineAmountsBefore.has(job)) this.#lineAmountsBefore.set(job, job.lineAmounts);
    job.lineAmounts = amounts;
    if (!job.isListed) this.#saveProgress(job, { usage: {}, costNano: null });
  }

  putKey = (record: KeyRecord): void => this.accounts.putKey(record);

  getKey = (digest: string): KeyRecord | undefined => this.accounts.getKey(digest);

  putPrice(hash: string, row: Price): void {
    this.#statements.price.run(hash, toJson(row));
  }

  recordHeartbeat(at: number): void {
    this.#statements.alive.run(Math.floor(at));
  }

  /**
   * Sets the instance of the next commits. Imported rows keep the names of their original
   * instances.
   */
  setInstance = (instance: string): void => void (this.#instance = instance);

  /** Adds a note as the row of a commit. The commit must contain nothing else. */
  appendNote(at: number, note: ChainNote): number {
    const seq = this.#nextSeq();
    this.#addRow(Math.floor(at), encodeNote(Math.floor(at), note));
    return seq;
  }

  /**
   * Drops the cached hashes of texts. Called after an erasure, so that old hashes are not used again.
   */
  forgetTexts = (): void => this.#saltedTexts.forget();

  /** Writes the batch: its rows, its meters, and its link in the hash chain. */
  seal(changed: Iterable<Meter>, dropped: readonly string[], open: OpenCalls<StoredCall>): void {
    const say = this.#statements;
    for (const id of dropped) say.drop.run(id);
    for (const { attempt, lineAmounts } of this.#lineAmountsBefore.keys())
      say.lines.run(encodeLineAmounts(lineAmounts), attempt);
    for (const meter of changed) {
      if (!needsWrite(meter)) continue;
      const { id, level, at, max, notifiedLevel } = meter;
      say.meter.run(id, String(level), Math.floor(at), String(max), String(notifiedLevel));
      meter.stored = { level, at, max, notifiedLevel };
    }
    this.#sealedHead = this.#head;
    if (this.#rows.length === 0) return;
    const { seq, segment, hash } = this.#head;
    const [first, last] = [seq + 1, seq + this.#rows.length];
    this.#listLongOpenCalls(last, open);
    const stored = this.#currentBatch();
    this.#sealedHead = { segment: segment + 1, seq: last, hash: commitHash(hash, stored) };
    say.batch.run(first, this.#instance, stored.terms, stored.rows);
    const low = this.#lowWaterMark.oldestOpen(last + 1);
    say.segment.run(
      segment + 1,
      first,
      last,
      this.#sealedHead.hash,
      this.#minTime,
      this.#maxTime,
      low,
    );
    this.#keyIndex.add(this.#terms, first);
    this.#saltedTexts.addTerms(this.#terms, first);
    this.#indexCalls(first);
  }

  /** Indexes the calls of this batch. One statement for all of them costs more if they are few. */
  #indexCalls(first: number): void {
    const say = this.#statements;
    const [opened, closed] = [this.#openedInBatch, this.#closedInBatch];
    if (opened.length <= MAX_SINGLE_INSERTS)
      for (const { attempt } of opened) say.begin.run(attempt, first);
    else say.beginAll.run(first, JSON.stringify(opened.map(({ attempt }) => attempt)));
    if (closed.length <= MAX_SINGLE_INSERTS) for (const { seq } of closed) say.end.run(seq, first);
    else say.endAll.run(first, `[${closed.map(({ seq }) => seq).join()}]`);
  }

  rollback(): void {
    this.#keyIndex.rollback();
    this.#saltedTexts.rollback();
    for (const call of this.#listedInBatch) call.isListed = false;
    for (const [job, before] of this.#lineAmountsBefore) job.lineAmounts = before;
    for (const call of this.#openedInBatch) this.#lowWaterMark.removeOpenCall(call.firstSeq);
    for (const first of this.#closedReserves) this.#lowWaterMark.addOpenCall(first);
    this.#clearBatch();
  }

  commit(): void {
    this.#head = this.#sealedHead;
    this.#keyIndex.commit();
    this.#saltedTexts.commit();
    this.#lowWaterMark.dropClosed();
    this.#clearBatch();
  }

  /** Yields the calls that the previous owner left open. */
  *openCalls(): Iterable<FoundOpenCall> {
    for (const left of readOpenCalls(this.#db)) {
      const { row, seq, firstSeq, isListed, progress, lineAmounts } = left;
      const { attempt, meterAmounts, holdNano } = row;
      const call: StoredCall = {
        attempt,
        meterAmounts,
        terms: createHashedTerms(serializeTerms(row)),
        identity: encodeIdentity(row),
        hold: holdNano === null ? "null" : `"${holdNano}"`,
        seq,
        firstSeq,
        isListed,
        ...(row.job !== undefined && { job: row.job }),
        lineAmounts,
      };
      this.#lowWaterMark.beginCommit(firstSeq);
      if (!isListed) this.#lowWaterMark.addOpenCall(firstSeq);
      yield { call, row, progress };
    }
  }

  #nextSeq(): number {
    return this.#head.seq + 1 + this.#rows.length;
  }

  #termsIndex(of: HashedTerms): number {
    if (of.listedIn !== this.#batchToken) {
      of.listedIn = this.#batchToken;
      of.index = this.#terms.push(of) - 1;
    }
    return of.index;
  }

  #addRow(at: number, row: string): void {
    this.#rows.push(row);
    if (at < this.#minTime) this.#minTime = at;
    if (at > this.#maxTime) this.#maxTime = at;
  }

  #saveProgress(call: StoredCall, progress: Progress): void {
    this.#statements.list.run(
      call.attempt,
      call.seq,
      JSON.stringify(progress.usage),
      progress.costNano,
    );
    if (call.isListed) return;
    call.isListed = true;
    this.#listedInBatch.push(call);
    this.#closeInLowWaterMark(call);
  }

  #closeInLowWaterMark({ firstSeq }: StoredCall): void {
    this.#lowWaterMark.removeOpenCall(firstSeq);
    this.#closedReserves.push(firstSeq);
  }

  /** Lists calls that are open for long, so that the next owner does not have to read far back. */
  #listLongOpenCalls(last: number, open: OpenCalls<StoredCall>): void {
    if (last - this.#lowWaterMark.oldestOpen(last + 1) <= MAX_RECOVERY_ENTRIES) return;
    for (const call of open.values())
      if (!call.isListed && call.seq < last - MAX_RECOVERY_ENTRIES / 2)
        this.#saveProgress(call, { usage: {}, costNano: null });
  }

  /** Returns this batch in its stored form. */
  #currentBatch(): StoredBatch {
    return {
      first: this.#head.seq + 1,
      instance: this.#instance,
      terms: `[${this.#terms.map(({ text }) => text).join()}]`,
      rows: `[${this.#rows.join()}]`,
    };
  }

  /** Returns the rows of this batch, which have not been written to the tables yet. */
  #pendingRows(): LedgerRow[] {
    return decodeCommit(this.#currentBatch());
  }

  #clearBatch(): void {
    this.#rows = [];
    this.#terms = [];
    this.#batchToken = {};
    this.#meterAmounts.clear();
    this.#minTime = Infinity;
    this.#maxTime = -Infinity;
    this.#openedInBatch = [];
    this.#closedInBatch = [];
    this.#listedInBatch = [];
    this.#closedReserves = [];
    if (this.#lineAmountsBefore.size > 0) this.#lineAmountsBefore.clear();
  }
}

// The SQL statements of the journal, prepared once.

const prepareStatements = (db: DatabaseSync) => ({
  batch: db.prepare("INSERT INTO batch (first, instance, terms, rows) VALUES (?, ?, ?, ?)"),
  segment: db.prepare(
    "INSERT INTO segment (id, first, last, hash, min_at, max_at, oldest_open) VALUES (?, ?, ?, ?, ?, ?, ?)",
  ),
  // OR FAIL is used because a failure rolls back the whole batch anyway, so the statement needs no
  // statement journal.
  begin: db.prepare("INSERT OR FAIL INTO call (attempt, first) VALUES (?, ?)"),
  beginAll: db.prepare(
    "INSERT OR FAIL INTO call (attempt, first) SELECT value, ? FROM json_each(?)",
  ),
  end: db.prepare("INSERT OR FAIL INTO closed_call (reserve, first) VALUES (?, ?)"),
  endAll: db.prepare(
    "INSERT OR FAIL INTO closed_call (reserve, first) SELECT value, ? FROM json_each(?)",
  ),
  known: db.prepare("SELECT 1 FROM call WHERE attempt = ?"),
  adjustment: db.prepare(
    "INSERT INTO adjustment (attempt, qualifier, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
  ),
  list: db.prepare(
    "INSERT INTO open_call (attempt, seq, usage, cost) VALUES (?, ?, ?, ?) " +
      "ON CONFLICT (attempt) DO UPDATE SET usage = excluded.usage, cost = excluded.cost",
  ),
  lines: db.prepare("UPDATE open_call SET line_amounts = ? WHERE attempt = ?"),
  unlist: db.prepare("DELETE FROM open_call WHERE attempt = ?"),
  meter: db.prepare(
    "INSERT INTO meter (id, level, at, max, notified_level) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE " +
      "SET level = excluded.level, at = excluded.at, max = excluded.max, notified_level = excluded.notified_level",
  ),
  drop: db.prepare("DELETE FROM meter WHERE id = ?"),
  price: db.prepare("INSERT INTO price (hash, price) VALUES (?, ?) ON CONFLICT DO NOTHING"),
  alive: db.prepare(
    "UPDATE instance SET last_heartbeat = ? WHERE epoch = (SELECT max(epoch) FROM instance)",
  ),
});
