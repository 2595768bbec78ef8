// One handle on the file, with the book that it keeps: a batch is one commit, in memory as on disk. After an error of the disk a
// session is thrown away, and the next one reads what is really there.
import { closeSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { createLedgerRules, recoveredSettle, recoveryTime, type LedgerRules } from "tollgate/store";
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
 * power     every commit is on the disk before it is acknowledged (synchronous = FULL)
 * process   every commit is with the system before it is acknowledged: it survives kill -9, and a power cut may
 *           take the last moments (NORMAL)
 * relaxed   acknowledged at once, committed within 20 ms (NORMAL): a crash may take those
 * Never OFF: that would risk the file, not only its last moments.
 */
const SYNCHRONOUS = { power: "FULL", process: "NORMAL", relaxed: "NORMAL" } as const;
const SQLITE_CONSTRAINT = 19;

export class LedgerSession {
  readonly db: DatabaseSync;
  readonly lookups: Lookups;
  /** What was done when it began. */
  readonly openResult: OpenResult;
  readonly #owner: string;
  readonly #isRelaxed: boolean;
  readonly #journal: SqliteJournal;
  readonly #rules: LedgerRules<EncodedReserve, EncodedSettle, StoredCall>;
  /** Prepared once, like all that is said in every commit. */
  readonly #statements: { [word in "begin" | "commit" | "save" | "release"]: StatementSync };
  #droppedMeters: readonly string[] = [];

  /** `recovers`: what others have left open is recovered. */
  constructor({ file, durability }: SqliteSettings, owner: string, recovers = true) {
    this.#owner = owner;
    this.#isRelaxed = durability === "relaxed";
    rejectNewer(file);
    rejectPartialImport(file);
    // Before SQLite makes it, so that no other user may read it.
    closeSync(openSync(file, "a", 0o600));
    const db = (this.db = new DatabaseSync(file, { timeout: 1_000 }));
    try {
      // Of a file that begins: what is pruned is given back page by page, and not by writing all of it anew.
      db.exec("PRAGMA auto_vacuum = INCREMENTAL");
      db.exec("PRAGMA journal_mode = WAL");
      db.exec(`PRAGMA synchronous = ${SYNCHRONOUS[durability]}`);
      // What is taken away is overwritten where it stood.
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
      // It has a reserve that was there already, which hardly ever happens: then each is looked up.
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

  /** What the ledger does with itself: all of it or nothing, like a batch. */
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
    const dead = found.filter(({ row }) => row.instance !== this.#owner);
    const now = Date.now();
    const at = recoveryTime(dead, now);
    for (const { row, progress } of dead)
      this.#rules.apply(toEncodedSettle(recoveredSettle(row, progress, at)));
    return { epoch: insertInstance(this.db, this.#owner, now), recovered: dead.length };
  }

  /** All or nothing, in memory as on disk. */
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
        `The ledger ${file} is damaged (${(error as Error).message}). Restore a copy of it, save what can be saved with ` +
          `"sqlite3 ${file} .recover", or move it away to begin a new one.`,
        { cause: error },
      )
    : error;
}
