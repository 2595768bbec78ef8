// Adds new entries to the rollups, commit by commit, outside the writer and in short strides. A row
// with an earlier time is added to the span of that time, so rows can arrive in any order.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { DimensionCache } from "../data/dimension-cache.ts";
import {
  type ChainedBatch,
  CHAINED_PAGE_SIZE,
  prepareChainedAfter,
} from "../data/chained-batches.ts";
import { PendingRollups } from "./pending-rollups.ts";
import { COMPACTED_UP_TO_SQL, readCompactedUpTo } from "../data/checkpoint.ts";
import { BATCH_COLUMNS, type StoredBatch } from "../data/stored-batch.ts";
import type { RollupFile } from "./rollup-file.ts";
import { RollupTrim } from "./rollup-trim.ts";

/** Minimum number of new entries for an update of the file. Fewer are read by each report. */
const MIN_NEW_ENTRIES = 4_096;
/** Maximum run time before yielding, in milliseconds. */
const STRIDE_MS = 4;

export class RollupUpdater {
  readonly #file: RollupFile;
  readonly #nextBatches: StatementSync;
  readonly #newestEntry: StatementSync;
  readonly #batchesBetween: StatementSync;
  readonly #compactedUpTo: StatementSync;
  readonly #dimensions = new DimensionCache();
  #running: Promise<void> | undefined;
  #isUrgent = false;
  #readers = 0;
  #isStopped = false;

  constructor(ledger: DatabaseSync, sums: RollupFile) {
    this.#file = sums;
    this.#nextBatches = prepareChainedAfter(ledger);
    this.#newestEntry = ledger.prepare("SELECT last FROM segment ORDER BY id DESC LIMIT 1");
    this.#batchesBetween = ledger.prepare(
      `SELECT ${BATCH_COLUMNS} FROM batch WHERE first >= ? AND first < ? ORDER BY first LIMIT ${CHAINED_PAGE_SIZE}`,
    );
    this.#compactedUpTo = ledger.prepare(COMPACTED_UP_TO_SQL);
  }

  /** Returns the number of entries that are not in the rollups yet. */
  behind(): number {
    const since = Math.max(this.#file.position.seq, readCompactedUpTo(this.#compactedUpTo));
    return Number(this.#newestEntry.get()?.["last"] ?? 0) - since;
  }

  /**
   * Whether rows in the rollups were compacted since. The rollups are unusable until the next run.
   */
  get needsTrim(): boolean {
    const { position } = this.#file;
    return position.seq > 0 && position.compactedUpTo !== readCompactedUpTo(this.#compactedUpTo);
  }

  /**
   * Updates the rollups. Concurrent calls share one run.
   * @param hurry Whether a report waits for the result.
   * @param least Minimum number of new entries. With fewer, nothing is written.
   */
  run(hurry: boolean, least = MIN_NEW_ENTRIES): Promise<void> {
    this.#isUrgent ||= hurry;
    return (this.#running ??= this.#run(least).finally(() => {
      this.#running = undefined;
      this.#isUrgent = false;
    }));
  }

  /** Blocks writes to the rollups until the result is disposed. */
  acquireReadLock(): Disposable {
    this.#readers++;
    return { [Symbol.dispose]: () => void this.#readers-- };
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #run(least: number): Promise<void> {
    for (;;) {
      while (!this.#isStopped && this.needsTrim) await this.#trim();
      if (this.#isStopped || this.behind() < least) return;
      const { position } = this.#file;
      const pruned =
        position.seq > 0 ? position.compactedUpTo : readCompactedUpTo(this.#compactedUpTo);
      const pending = new PendingRollups(this.#dimensions, { ...position, compactedUpTo: pruned });
      let { segment } = pending.after;
      for (let began = performance.now(); pending.hasRoom && !this.#isStopped;) {
        const page = this.#nextBatches.all(segment, pruned) as unknown as ChainedBatch[];
        for (const one of page) pending.add(one);
        segment = page.at(-1)?.id ?? segment;
        if (page.length < CHAINED_PAGE_SIZE) break;
        began = await this.#yieldToOthers(began);
      }
      await this.#waitForReaders();
      if (this.#isStopped || !pending.upTo) return;
      pending.write(this.#file);
      await setImmediate();
    }
  }

  /** Recomputes the rollups that contained compacted rows from the remaining rows. */
  async #trim(): Promise<void> {
    const pruned = readCompactedUpTo(this.#compactedUpTo);
    const trimming = new RollupTrim(this.#file, this.#dimensions, pruned);
    let began = performance.now();
    for (const [begin, end] of trimming.remainingRanges)
      for (let first = begin; first < end && trimming.hasRoom && !this.#isStopped;) {
        const page = this.#batchesBetween.all(first, end) as unknown as StoredBatch[];
        for (const one of page) trimming.add(one);
        first = page.length < CHAINED_PAGE_SIZE ? end : page.at(-1)!.first + 1;
        began = await this.#yieldToOthers(began);
      }
    await this.#waitForReaders();
    if (!this.#isStopped) trimming.write();
  }

  /**
   * Yields to other work when the stride is over. Unless a report waits, the update uses at most
   * 50% of one CPU.
   */
  async #yieldToOthers(began: number): Promise<number> {
    const took = performance.now() - began;
    if (took < STRIDE_MS) return began;
    await (this.#isUrgent ? setImmediate() : sleep(took));
    return performance.now();
  }

  /** Waits until nothing reads the rollups. */
  async #waitForReaders(): Promise<void> {
    while (this.#readers > 0) await sleep(1);
  }
}
