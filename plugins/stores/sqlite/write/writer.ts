// The one writer: it owns the file, keeps the book in memory, and makes one commit of each batch.
// After an error of the disk it never goes on with the same handle: it opens anew and reads what is really there.
import {
  getFault,
  type AccountRecord,
  type AuditedCommand,
  type AuditEnd,
  type AuditEntry,
  type KeyRecord,
  type Limit,
  type LimitUsage,
  type ThresholdReached,
  type PageRequest,
  type Price,
  type ResultPage,
} from "tollgate/plugin";
import { appendAudit, listAudit } from "../audit-log.ts";
import { createBallast } from "../ballast.ts";
import { erase } from "../retention/erasure.ts";
import type { CompactionResult, CheckpointRollup } from "../retention/compaction.ts";
import type { Leftovers } from "../retention/leftovers.ts";
import {
  clearLeftovers,
  discardStaged,
  stageRollups,
  applyCheckpoint,
  freePages,
  deleteCompacted,
  type StepResult,
} from "../retention/compaction-steps.ts";
import { SQLITE_BUSY, lockLedger } from "../lock.ts";
import { LedgerSession, type OpenResult, type SqliteSettings } from "./ledger-session.ts";
import {
  createBatchDecoder,
  encodeResults,
  type EncodedCommand,
  type EncodedResults,
} from "../data/batch-codec.ts";

/** Of `relaxed`: how long what was acknowledged may wait for its commit. */
const RELAXED_MS = 20;
const SQLITE_FULL = 13;

/** The steps of a compaction. */
export type StepMethod =
  | "discardStaged"
  | "stageRollups"
  | "applyCheckpoint"
  | "deleteCompacted"
  | "clearLeftovers"
  | "freePages";

export class Writer {
  readonly openResult: OpenResult;
  readonly #settings: SqliteSettings;
  readonly #owner: string;
  readonly #lock: ReturnType<typeof lockLedger>;
  readonly #ballast: ReturnType<typeof createBallast>;
  readonly #decodeBatch = createBatchDecoder();
  #session: LedgerSession | undefined;
  #commitTimer: NodeJS.Timeout | undefined;
  /** Why what was acknowledged could not be committed. */
  #commitError: unknown;

  /** Throws when another process has the file, or when it cannot be what it should be. */
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

  /** When the oldest row was written. */
  oldestAt(): number | undefined {
    const first =
      "SELECT min_at FROM segment WHERE last > coalesce((SELECT last FROM checkpoint), 0) ORDER BY id LIMIT 1";
    return this.#currentSession().db.prepare(first).get()?.["min_at"] as number | undefined;
  }

  apply(text: string): EncodedResults {
    // First of all: what was told of numbers holds, whatever becomes of the batch.
    const batch = this.#decodeBatch(text);
    // A sign of life is also the question whether new calls are taken.
    if (!this.#ballast.reserve() && batch.some((c) => c.do === "reserve" || c.do === "heartbeat"))
      throw new Error(
        `There is no room left for ${this.#settings.file}. Calls under way are written down.`,
      );
    if (this.#commitError) {
      const error = this.#commitError;
      this.#commitError = undefined;
      throw new Error("The last moments could not be written down.", { cause: error });
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
      // Whether the commit happened is not known: on a new handle the batch happens now, or turns out to be a repeat.
      return this.#applyOnce(batch);
    }
  }

  listUndelivered(): readonly ThresholdReached[] {
    return this.#currentSession().undeliveredThresholds();
  }

  markDelivered(crossings: readonly ThresholdReached[]): void {
    this.#betweenBatches((session) => session.markDelivered(crossings));
  }

  /** Takes these words out. How many there were, and which. */
  erase(hashes: readonly string[], at: number): readonly string[] {
    return this.#betweenBatches((session) => erase(session, hashes, at));
  }

  /** What an operator does, or how that ended: durable when it returns. */
  appendAudit(said: AuditEntry | AuditEnd): void {
    this.#betweenBatches((session) => appendAudit(session, said));
  }

  listAudit(page?: PageRequest): ResultPage<AuditedCommand> {
    return listAudit(this.#currentSession().db, page);
  }

  /** One of those that follow, and how long it has kept the others waiting. */
  runStep(method: StepMethod, ...args: readonly unknown[]): { value: unknown; ms: number } {
    const began = performance.now();
    const value = (this[method] as (...args: readonly unknown[]) => unknown)(...args);
    return { value, ms: performance.now() - began };
  }

  discardStaged(): void {
    this.#betweenBatches(discardStaged);
  }

  stageRollups(sums: readonly CheckpointRollup[]): void {
    this.#betweenBatches((session) => stageRollups(session, sums));
  }

  applyCheckpoint(folded: Omit<CompactionResult, "rollups">, at: number): boolean {
    return this.#betweenBatches((session) => applyCheckpoint(session, folded, at));
  }

  deleteCompacted(): StepResult {
    return this.#betweenBatches(deleteCompacted);
  }

  clearLeftovers(leftovers: Leftovers, edge: number): StepResult {
    return this.#betweenBatches((session) => clearLeftovers(session, leftovers, edge));
  }

  freePages(): StepResult {
    return this.#betweenBatches(freePages);
  }

  close(): void {
    try {
      this.#commit();
    } finally {
      this.#discardSession();
      this.#lock.release();
    }
  }

  /** Between batches. After an error of the disk, the next one begins on a new handle. */
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
      // A key that was handed out, or taken back, stays so.
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

  /** Later, for `relaxed`. What fails now was acknowledged already: the next batch hears of it. */
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
      // It is the handle that is broken.
    }
    this.#session = undefined;
  }
}
