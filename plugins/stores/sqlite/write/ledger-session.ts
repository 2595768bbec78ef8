// Opens the database file and applies the ledger rules to each batch. A batch is one commit, both
// in memory and on disk. After a disk error, the session is discarded, and the next session reads
// the actual state.
import { closeSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import {
  createLedgerRules,
  isJobCall,
  recoveredSettle,
  recoveryTime,
  type LedgerRules,
} from "tollgate/store";
import { verifyRecentCommits } from "../data/chain.ts";
import { rejectPartialImport } from "../data/partial-import.ts";
import { SqliteJournal, type StoredCall } from "./journal.ts";
import { insertInstance, readMeters } from "../data/open-calls.ts";
import { createLookups, type Lookups } from "../data/lookups.ts";
import { migrate, rejectNewer } from "../data/schema.ts";
import {
  toEncodedSettle,
  type EncodedCommand,
  type EncodedReserve,
  type EncodedSettle,
} from "../data/batch-codec.ts";
import type { Limit, LimitUsage, ThresholdReached, CommandResult } from "tollgate/plugin";

export interface SqliteSettings {
  file: string;
  durability: "power" | "process" | "relaxed";
  ballastMb: number;
}

export interface OpenResult {
  epoch: number;
  recovered: number;
}

/**
 * power     every commit is on disk before it is acknowledged (synchronous = FULL)
 * process   every commit is written to the operating system before it is acknowledged: it survives
 *           kill -9, but a power failure may lose the last moments (NORMAL)
 * relaxed   acknowledged immediately, committed within 20 ms (NORMAL): a crash may lose these
 * OFF is never used, because it could damage the whole file and not only lose the last moments.
 */
const SYNCHRONOUS = { power: "FULL", process: "NORMAL", relaxed: "NORMAL" } as const;
const SQLITE_CONSTRAINT = 19;

export class LedgerSession {
  readonly db: DatabaseSync;
  readonly lookups: Lookups;
  /** The result of opening the ledger. */
  readonly openResult: OpenResult;
  readonly #owner: string;
  readonly #isRelaxed: boolean;
  readonly #journal: SqliteJournal;
  readonly #rules: LedgerRules<EncodedReserve, EncodedSettle, StoredCall>;
  /** Statements of every transaction, prepared once. */
  readonly #statements: { [word in "begin" | "commit" | "save" | "release"]: StatementSync };
  #droppedMeters: readonly string[] = [];

  /**
   * @param recovers Whether calls that other instances left open are recovered.
   */
  constructor({ file, durability }: SqliteSettings, owner: string, recovers = true) {
    this.#owner = owner;
    this.#isRelaxed = durability === "relaxed";
    rejectNewer(file);
    rejectPartialImport(file);
    // Creates the file before SQLite does, so that other users cannot read it.
    closeSync(openSync(file, "a", 0o600));
    const db = (this.db = new DatabaseSync(file, { timeout: 1_000 }));
    try {
      // Only affects a new file: pages that a compaction freed are released one by one, without
      // rewriting the whole file.
      db.exec("PRAGMA auto_vacuum = INCREMENTAL");
      db.exec("PRAGMA journal_mode = WAL");
      db.exec(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`);
      // Deleted content is overwritten in place.
      db.exec("PRAGMA secure_delete = FAST");
      if (durability === "power") db.exec("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1");
      migrate(db, file);
      verifyRecentCommits(db, file);
      this.#journal = new SqliteJournal(db, owner);
      this.#rules = createLedgerRules(this.#journal, () => owner);
      this.#statements = {
        begin: db.prepare("BEGIN IMMEDIATE"),
        commit: db.prepare("COMMIT"),
        save: db.prepare("SAVEPOINT batch"),
        release: db.prepare("RELEASE batch"),
      };
      this.lookups = createLookups(db);
      this.openResult = this.#transaction(() => this.#recover(recovers));
    } catch (error) {
      db.close();
      throw toReadableError(error, file);
    }
  }

  apply(batch: readonly EncodedCommand[]): readonly CommandResult[] {
    const work = () => batch.map((c) => this.#rules.apply(c));
    try {
      return this.#transaction(work);
    } catch (error) {
      if (((error as { errcode?: number }).errcode ?? 0) % 256 !== SQLITE_CONSTRAINT) throw error;
      // The batch repeats a reserve that exists, which is rare. Apply it again and look up each
      // reserve.
      this.#journal.checksDuplicates = true;
      try {
        return this.#transaction(work);
      } finally {
        this.#journal.checksDuplicates = false;
      }
    }
  }

  limitUsage(limits: readonly Limit[], at: number): readonly LimitUsage[] {
    return this.#rules.limitUsage(limits, at);
  }

  /** Runs a maintenance step in one transaction, like a batch. */
  runStep<T>(work: (db: DatabaseSync, journal: SqliteJournal) => T): T {
    return this.#transaction(() => work(this.db, this.#journal));
  }

  undeliveredThresholds(): readonly ThresholdReached[] {
    return this.#rules.undeliveredThresholds();
  }

  markDelivered(crossings: readonly ThresholdReached[]): void {
    this.#transaction(() => this.#rules.markDelivered(crossings));
  }

  #recover(recovers: boolean): OpenResult {
    if (!recovers) return { epoch: 0, recovered: 0 };
    for (const meter of readMeters(this.db)) this.#rules.loadMeter(meter);
    const found = [...this.#journal.openCalls()];
    for (const { call } of found) this.#rules.restoreCall(call);
    // A job outlives its process.
    const dead = found.filter(({ row }) => row.instance !== this.#owner && !isJobCall(row));
    const now = Date.now();
    const at = recoveryTime(dead, now);
    for (const { row, progress } of dead)
      this.#rules.apply(toEncodedSettle(recoveredSettle(row, progress, at)));
    return { epoch: insertInstance(this.db, this.#owner, now), recovered: dead.length };
  }

  /** Commits the work, or rolls it back in memory and on disk. */
  #transaction<T>(work: () => T): T {
    const db = this.db;
    const journal = this.#journal;
    const book = this.#rules;
    const say = this.#statements;
    const relaxed = this.#isRelaxed;
    if (!db.isTransaction) say.begin.run();
    if (relaxed) say.save.run();
    try {
      const result = work();
      journal.seal(book.changedMeters(), this.#droppedMeters, book.openCalls);
      (relaxed ? say.release : say.commit).run();
      journal.commit();
      book.commit();
      this.#droppedMeters = book.dropIdleMeters();
      return result;
    } catch (error) {
      book.rollback();
      journal.rollback();
      if (db.isTransaction) db.exec(relaxed ? "ROLLBACK TO batch; RELEASE batch" : "ROLLBACK");
      throw error;
    }
  }
}

const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

function toReadableError(error: unknown, file: string): unknown {
  const code = (error as { errcode?: number }).errcode;
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB
    ? new Error(
        `The ledger ${file} is damaged (${(error as Error).message}). Restore a backup, recover data with "sqlite3 ${file} .recover", or move the file away to create a new ledger.`,
        { cause: error },
      )
    : error;
}
