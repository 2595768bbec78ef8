// The only writer of the ledger file. It keeps the limits in memory and commits each batch in one
// transaction. After a disk error, it discards its handle, opens the file again, and reads the
// actual state.
import {
  getFault,
  type AccountRecord,
  type AuditedCommand,
  type AuditEnd,
  type AuditEntry,
  type JobLeaseRequest,
  type JobQuery,
  type JobRecord,
  type KeyRecord,
  type Limit,
  type LimitUsage,
  type ThresholdReached,
  type PageRequest,
  type Price,
  type ResultPage,
} from "tollgate/plugin";
import { appendAudit, listAudit } from "../audit-log.ts";
import {
  countJobs,
  leaseJobs,
  deleteJob,
  findJob,
  listJobs,
  nextJobDueAt,
  putJob,
} from "../data/jobs.ts";
import { erase } from "../retention/erasure.ts";
import {
  clearLeftovers,
  discardStaged,
  stageRollups,
  applyCheckpoint,
  freePages,
  deleteCompacted,
} from "../retention/compaction-steps.ts";
import { SQLITE_BUSY, lockLedger } from "../lock.ts";
import { LedgerSession, type OpenResult, type SqliteSettings } from "./ledger-session.ts";
import {
  createBatchDecoder,
  encodeResults,
  type EncodedCommand,
  type EncodedResults,
} from "../data/batch-codec.ts";
import { closeSync, openSync, statSync, unlinkSync, writeSync } from "node:fs";
import { randomFillSync } from "node:crypto";

/** With `relaxed`, how long an acknowledged command may wait for its commit, in milliseconds. */
const RELAXED_MS = 20;
const SQLITE_FULL = 13;

/** The steps of a compaction, which run between batches. */
const STEPS = {
  discardStaged,
  stageRollups,
  applyCheckpoint,
  deleteCompacted,
  clearLeftovers,
  freePages,
};
type Steps = typeof STEPS;
export type StepMethod = keyof Steps;
export type StepArgs<M extends StepMethod> =
  Parameters<Steps[M]> extends [LedgerSession, ...infer A] ? A : never;
export type StepValue<M extends StepMethod> = ReturnType<Steps[M]>;

export class Writer {
  readonly openResult: OpenResult;
  readonly #settings: SqliteSettings;
  readonly #owner: string;
  readonly #lock: ReturnType<typeof lockLedger>;
  readonly #ballast: ReturnType<typeof createBallast>;
  readonly #decodeBatch = createBatchDecoder();
  #session: LedgerSession | undefined;
  #commitTimer: NodeJS.Timeout | undefined;
  /** The error of a delayed commit whose commands were already acknowledged. */
  #commitError: unknown;

  /**
   * @throws If another process holds the file, or if the file is damaged or has an unsupported
   *   version.
   */
  constructor(settings: SqliteSettings, owner: string) {
    this.#settings = settings;
    this.#owner = owner;
    this.#lock = lockLedger(settings.file);
    this.#ballast = createBallast(`${settings.file}.ballast`, settings.ballastMb);
    try {
      this.openResult = this.#currentSession().openResult;
      this.#commit();
    } catch (error) {
      this.#discardSession();
      this.#lock.release();
      throw error;
    }
  }

  findKey(digest: string): KeyRecord | undefined {
    return this.#currentSession().lookups.findKey(digest);
  }

  findPrice(hash: string): Price | undefined {
    return this.#currentSession().lookups.findPrice(hash);
  }

  listKeys(page?: PageRequest): ResultPage<KeyRecord> {
    return this.#currentSession().lookups.listKeys(page);
  }

  listAccounts(page?: PageRequest): ResultPage<AccountRecord> {
    return this.#currentSession().lookups.listAccounts(page);
  }

  readLimits(limits: readonly Limit[], at: number): readonly LimitUsage[] {
    return this.#currentSession().limitUsage(limits, at);
  }

  /** Returns when the oldest row was written. */
  oldestAt(): number | undefined {
    const first =
      "SELECT min_at FROM segment WHERE last > coalesce((SELECT last FROM checkpoint), 0) ORDER BY id LIMIT 1";
    return this.#currentSession().db.prepare(first).get()?.["min_at"] as number | undefined;
  }

  apply(text: string): EncodedResults {
    // The batch is decoded before this, so that the numbers of its terms stay valid even if the
    // batch fails.
    const batch = this.#decodeBatch(text);
    // A heartbeat also tests whether new calls are accepted.
    if (!this.#ballast.reserve() && batch.some((c) => c.do === "reserve" || c.do === "heartbeat"))
      throw new Error(
        `No disk space left for ${this.#settings.file}. Open calls are still recorded.`,
      );
    if (this.#commitError) {
      const error = this.#commitError;
      this.#commitError = undefined;
      throw new Error("Cannot write the last rows of the ledger.", { cause: error });
    }
    try {
      return this.#applyOnce(batch);
    } catch (error) {
      const code = (error as { errcode?: number }).errcode;
      if (getFault(error) && this.#session?.db.isTransaction) this.#commitSoon();
      if (getFault(error) || code === SQLITE_BUSY) throw error;
      this.#discardSession();
      if (code === SQLITE_FULL) {
        this.#ballast.release();
        throw error;
      }
      // It is unknown whether the commit happened. With a new handle, the batch is either applied
      // now or recognized as a repetition.
      return this.#applyOnce(batch);
    }
  }

  listUndelivered(): readonly ThresholdReached[] {
    return this.#currentSession().undeliveredThresholds();
  }

  markDelivered(crossings: readonly ThresholdReached[]): void {
    this.#betweenBatches((session) => session.markDelivered(crossings));
  }

  /** Erases texts and returns the hashes of those that existed. */
  erase(hashes: readonly string[], at: number): readonly string[] {
    return this.#betweenBatches((session) => erase(session, hashes, at));
  }

  /** Records an operator's command or its result. It is durable when the method returns. */
  appendAudit(entry: AuditEntry | AuditEnd): void {
    this.#betweenBatches((session) => appendAudit(session, entry));
  }

  listAudit(page?: PageRequest): ResultPage<AuditedCommand> {
    return listAudit(this.#currentSession().db, page);
  }

  putJob(record: JobRecord): void {
    this.#betweenBatches((session) => session.runStep((db) => putJob(db, record)));
  }

  findJob(id: string): JobRecord | undefined {
    return findJob(this.#currentSession().db, id);
  }

  listJobs(query: JobQuery, page?: PageRequest): ResultPage<JobRecord> {
    return listJobs(this.#currentSession().db, query, page);
  }

  /** Leases due jobs. Writes nothing if no job is due. */
  leaseJobs(request: JobLeaseRequest): readonly JobRecord[] {
    const due = this.nextJobDueAt(request.kinds);
    if (due === undefined || due > request.at) return [];
    return this.#betweenBatches((session) => session.runStep((db) => leaseJobs(db, request)));
  }

  countJobs(kinds: readonly string[]): ReturnType<typeof countJobs> {
    return countJobs(this.#currentSession().db, kinds);
  }

  nextJobDueAt(kinds: readonly string[]): number | undefined {
    return nextJobDueAt(this.#currentSession().db, kinds);
  }

  deleteJob(id: string, version: number): void {
    this.#betweenBatches((session) => session.runStep((db) => deleteJob(db, id, version)));
  }

  /** Runs a compaction step and returns how long it blocked other work. */
  runStep(method: StepMethod, ...args: readonly unknown[]): { value: unknown; ms: number } {
    const began = performance.now();
    const step = STEPS[method] as (session: LedgerSession, ...args: readonly unknown[]) => unknown;
    const value = this.#betweenBatches((session) => step(session, ...args));
    return { value, ms: performance.now() - began };
  }

  close(): void {
    try {
      this.#commit();
    } finally {
      this.#discardSession();
      this.#lock.release();
    }
  }

  /**
   * Runs work between batches. After an error that is not a fault, the next task uses a new handle.
   */
  #betweenBatches<T>(work: (session: LedgerSession) => T): T {
    try {
      const result = work(this.#currentSession());
      this.#commit();
      return result;
    } catch (error) {
      if (!getFault(error)) this.#discardSession();
      throw error;
    }
  }

  #currentSession(): LedgerSession {
    return (this.#session ??= new LedgerSession(this.#settings, this.#owner));
  }

  #applyOnce(batch: readonly EncodedCommand[]): EncodedResults {
    const verdicts = this.#currentSession().apply(batch);
    if (this.#settings.durability === "relaxed")
      // Commit immediately, so that an issued or revoked key survives a crash.
      if (batch.some((c) => c.do === "key" || c.do === "account" || c.do === "price"))
        this.#commit();
      else this.#commitSoon();
    return encodeResults(batch, verdicts);
  }

  #commit(): void {
    clearTimeout(this.#commitTimer);
    this.#commitTimer = undefined;
    if (this.#session?.db.isTransaction) this.#session.db.exec("COMMIT");
  }

  /**
   * Commits after a delay. With `relaxed`, the commands are already acknowledged, so the next batch
   * receives the error.
   */
  #commitSoon(): void {
    this.#commitTimer ??= setTimeout(() => {
      try {
        this.#commit();
      } catch (error) {
        this.#commitError = error;
        this.#discardSession();
      }
    }, RELAXED_MS);
  }

  #discardSession(): void {
    clearTimeout(this.#commitTimer);
    this.#commitTimer = undefined;
    try {
      this.#session?.db.close();
    } catch {
      // The handle itself is broken.
    }
    this.#session = undefined;
  }
}

// Reserves disk space for the case that the disk is full. The ballast file has no meaningful
// content. When the disk is full, it is deleted so that open calls can still be recorded.

const MEGABYTE = 1 << 20;
/** Interval between attempts to reserve the space, in milliseconds. */
const RESERVE_RETRY_MS = 1_000;

interface Ballast {
  /** Reserves the space. Returns false if the disk was full and still is. */
  reserve(): boolean;
  release(): void;
}

function createBallast(file: string, megabytes: number): Ballast {
  let there = megabytes === 0 || fillFile(file, megabytes);
  let triedAt = -Infinity;
  return {
    reserve() {
      if (there || performance.now() - triedAt < RESERVE_RETRY_MS) return there;
      triedAt = performance.now();
      return (there = fillFile(file, megabytes));
    },
    release() {
      there = false;
      triedAt = performance.now();
      removeFile(file);
    },
  };
}

function fillFile(file: string, megabytes: number): boolean {
  if (statSync(file, { throwIfNoEntry: false })?.size === megabytes * MEGABYTE) return true;
  // Random data, because some file systems do not allocate space for zeros.
  const block = randomFillSync(Buffer.allocUnsafe(MEGABYTE));
  try {
    const handle = openSync(file, "w", 0o600);
    try {
      for (let i = 0; i < megabytes; i++)
        if (writeSync(handle, block) < MEGABYTE) throw new Error("No space left on the disk.");
    } finally {
      closeSync(handle);
    }
    return true;
  } catch {
    removeFile(file);
    return false;
  }
}

function removeFile(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // The file did not exist.
  }
}
