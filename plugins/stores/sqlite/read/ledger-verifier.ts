// Verifies all data that is derived from the entries: the meters, the list of open calls, the
// lookup tables, and the rollups. It processes the entries in order.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Problem } from "tollgate/plugin";
import {
  type LedgerRow,
  decodeCommit,
  LedgerReplay,
  RunningTotal,
  createRollup,
  parseRollupGroups,
  type Rollup,
  hashSet,
  hashSalted,
} from "tollgate/store";
import { AuditLogVerifier } from "../audit-log.ts";
import { type Checkpoint, verifyCheckpoint, readCheckpoint } from "../data/checkpoint.ts";
import { LookupVerifier, type AddProblem } from "./lookup-verifier.ts";
import { readMeters } from "../data/open-calls.ts";
import { parseNote, type ChainNote } from "../data/chain-note.ts";
import {
  readRetainedReserves,
  createRowLookup,
  type RowLookup,
  type StoredBatch,
} from "../data/stored-batch.ts";
import type { Samples, Sample } from "../sums/rollups.ts";
import { SPANS_MS } from "../sums/rollup-file.ts";

/** Call `add` for every commit in order, then call `problems` for the result. */
export class LedgerVerifier {
  readonly #db: DatabaseSync;
  readonly #lookups: LookupVerifier;
  /** Open calls have the number of their reserve. */
  readonly #replay: LedgerReplay<number>;
  readonly #problems: Problem[] = [];
  readonly #rows: RowLookup;
  #rollups: RollupVerifier | undefined;
  readonly #saltedTexts: SaltedTextVerifier;
  readonly #auditLog: AuditLogVerifier;
  #checkpointNote: ChainNote["compacted"];
  #latest = 0;

  /**
   * @param samples Rollups that were computed earlier, for comparison with the entries.
   */
  constructor(db: DatabaseSync, samples?: Samples) {
    this.#db = db;
    this.#rows = createRowLookup(db);
    this.#lookups = new LookupVerifier(db, this.#addProblem);
    this.#saltedTexts = new SaltedTextVerifier(db, this.#addProblem);
    const base = readCheckpoint(db);
    this.#replay = new LedgerReplay(base?.meters, base?.jobs);
    this.#auditLog = new AuditLogVerifier(db, base);
    if (base) this.#startFromCheckpoint(base);
    // Rollups from before a compaction are rebuilt anyway, so they are not verified.
    if (samples?.compactedUpTo === (base?.last ?? 0))
      this.#rollups = new RollupVerifier(samples, this.#addProblem);
  }

  /** Loads the state of the compacted rows from the checkpoint. */
  #startFromCheckpoint({ erasures, lastAt }: Checkpoint): void {
    this.#latest = lastAt;
    for (const [seq, count, hash] of erasures) this.#saltedTexts.addErasure(seq, { count, hash });
    for (const { isSettled, ...stored } of readRetainedReserves(this.#db)) {
      const [row] = decodeCommit(stored);
      if (!row) continue;
      this.#lookups.verifyReserve(row, stored.first);
      if (!isSettled) this.#replay.retain(row, stored.first);
    }
  }

  add(stored: StoredBatch): void {
    const noted = parseNote(stored.rows);
    if (noted?.note.erased) this.#saltedTexts.addErasure(stored.first, noted.note.erased);
    if (noted?.note.audit) this.#auditLog.addNote(stored.first, noted.note.audit);
    if (noted?.note.compacted) this.#checkpointNote = noted.note.compacted;
    const rows = decodeCommit(stored);
    this.#saltedTexts.add(rows);
    this.#lookups.verifyCommit(stored, rows);
    rows.forEach((row, i) => {
      this.#latest = Math.max(this.#latest, row.at);
      const seq = stored.first + i;
      this.#rollups?.addRow(row, seq);
      if (row.kind === "reserve") {
        this.#lookups.verifyReserve(row, stored.first);
        this.#replay.reserve(row, seq);
      } else if (row.kind === "settle") this.#verifySettle(row, stored.first);
      else this.#verifyAdjustment(row, seq);
    });
  }

  problems(): Problem[] {
    this.#problems.push(...verifyCheckpoint(this.#db, this.#checkpointNote));
    this.#problems.push(...this.#auditLog.problems());
    this.#saltedTexts.check();
    this.#problems.push(
      ...this.#replay.verifyWindows(readMeters(this.#db), this.#latest, Date.now()),
    );
    this.#lookups.verifyCounts();
    this.#verifyOpenCalls();
    this.#rollups?.problems();
    return this.#problems;
  }

  readonly #addProblem: AddProblem = (path, message) => void this.#problems.push({ path, message });

  #verifySettle(row: LedgerRow, first: number): void {
    const call = this.#replay.settle(row);
    if (call) this.#lookups.verifySettle(row, call.data, first);
    else this.#addProblem(`/entry/${row.attempt}`, "The settle has no reserve.");
  }

  #verifyAdjustment(row: LedgerRow, seq: number): void {
    this.#lookups.verifyAdjustment(row, seq);
    this.#replay.adjust(row, this.#rows.findReserve(row.attempt));
  }

  #verifyOpenCalls(): void {
    const newest = this.#db.prepare("SELECT oldest_open FROM segment ORDER BY id DESC LIMIT 1");
    const low = Number(newest.get()?.["oldest_open"] ?? 0);
    const listed = new Set<string>();
    for (const { attempt } of this.#db.prepare("SELECT attempt FROM open_call").all()) {
      listed.add(String(attempt));
      if (!this.#replay.open.has(String(attempt)))
        this.#addProblem(`/open_call/${attempt}`, "The call is listed as open, but is settled.");
    }
    for (const [attempt, { data: seq }] of this.#replay.open)
      if (seq < low && !listed.has(attempt))
        this.#addProblem(
          `/open_call/${attempt}`,
          "The call is not settled, but is not listed as open.",
        );
  }
}

// Compares rollups with their entries: all sampled days, hours, and quarters, and the grand total
// over all days.

const [DAY] = SPANS_MS;
const spanStart = (at: number, span: number): number => Math.floor(at / span) * span;

class RollupVerifier {
  readonly #samples: Samples;
  readonly #addProblem: AddProblem;
  /** Rollups computed from the entries of each sampled time span. */
  readonly #computedRollups = new Map<string, Rollup>();
  readonly #grandTotal = new RunningTotal();

  constructor(samples: Samples, wrong: AddProblem) {
    this.#samples = samples;
    this.#addProblem = wrong;
    for (const { span, start } of samples.rollups)
      this.#computedRollups.set(`${span} ${start}`, createRollup("labels"));
  }

  addRow(row: LedgerRow, seq: number): void {
    const { upTo, days } = this.#samples;
    if (seq > upTo || row.kind === "reserve") return;
    if (days.get(spanStart(row.at, DAY)) !== undefined) this.#grandTotal.addRow(row);
    for (const span of SPANS_MS)
      this.#computedRollups.get(`${span} ${spanStart(row.at, span)}`)?.add(row);
  }

  problems(): void {
    for (const sample of this.#samples.rollups)
      if (!this.#matchesSample(sample)) return this.#reportMismatch(sample);
    const sum = new RunningTotal();
    for (const text of this.#samples.days.values())
      if (text !== undefined) for (const [, amounts] of parseRollupGroups(text)) sum.add(amounts);
    const totalsText = ({ calls, costNano, unpriced }: RunningTotal) =>
      `${calls} ${costNano} ${unpriced}`;
    if (totalsText(sum) !== totalsText(this.#grandTotal))
      this.#reportMismatch({ start: undefined });
  }

  #matchesSample({ level, span, start, rollup }: Sample): boolean {
    const own = createRollup(level);
    own.merge(this.#computedRollups.get(`${span} ${start}`)!);
    return own.serialize() === rollup;
  }

  #reportMismatch({ start }: { readonly start: number | undefined }): void {
    const when = start === undefined ? "" : `/${new Date(start).toISOString()}`;
    this.#addProblem(
      `/rollups${when}`,
      "Rollups did not match the entries and are being rebuilt. -",
    );
  }
}

// Verifies that every hash in the rows has a text, or a text whose erasure is recorded in a note.

type ErasedCount = NonNullable<ChainNote["erased"]>;

/** Maximum number of present hashes that are kept in memory. */
const MAX_KNOWN_HASHES = 100_000;

class SaltedTextVerifier {
  readonly #db: DatabaseSync;
  readonly #addProblem: AddProblem;
  readonly #findText: StatementSync;
  readonly #erased = new Map<number, ErasedCount>();
  readonly #knownHashes = new Set<string>();

  constructor(db: DatabaseSync, wrong: AddProblem) {
    this.#db = db;
    this.#addProblem = wrong;
    this.#findText = db.prepare(
      "SELECT 1 FROM salted_text WHERE hash = ? AND erased_at_seq IS NOT 0",
    );
  }

  /** Adds an erasure that a note records. */
  addErasure(seq: number, count: ErasedCount): void {
    this.#erased.set(seq, count);
  }

  add(rows: readonly LedgerRow[]): void {
    for (const { attempt, labels } of rows)
      for (const its of Object.values(labels) as string[]) {
        if (this.#knownHashes.has(its)) continue;
        if (this.#knownHashes.size >= MAX_KNOWN_HASHES) this.#knownHashes.clear();
        this.#knownHashes.add(its);
        if (!this.#findText.get(its))
          this.#addProblem(`/salted_text/${its}`, `The label text of ${attempt} is missing.`);
      }
  }

  check(): void {
    const gone = new Map<number, string[]>();
    for (const row of this.#db
      .prepare("SELECT hash, salt, text, erased_at_seq FROM salted_text")
      .iterate()) {
      const its = String(row["hash"]);
      // Cleared after compaction because no remaining row uses it.
      if (row["erased_at_seq"] === 0) continue;
      if (row["erased_at_seq"] !== null) {
        const seq = Number(row["erased_at_seq"]);
        const list = gone.get(seq);
        if (list) list.push(its);
        else gone.set(seq, [its]);
      } else if (hashSalted(String(row["salt"]), String(row["text"])) !== its)
        this.#addProblem(`/salted_text/${its}`, "The text differs from the rows.");
    }
    for (const [seq, { count, hash }] of this.#erased) {
      const there = gone.get(seq) ?? [];
      gone.delete(seq);
      if (there.length !== count || hashSet(there) !== hash)
        this.#addProblem(
          `/salted_text`,
          `Entry ${seq} erased ${count} texts, but ${there.length} of these texts still exist.`,
        );
    }
    for (const [seq, { length }] of gone)
      this.#addProblem(
        `/salted_text`,
        `${length} texts are missing, and entry ${seq} does not record their erasure.`,
      );
  }
}
