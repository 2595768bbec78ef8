// Adds up what has been written since the last time: commit by commit, off the writer's way, a little at a time. Rows whose time is past
// go where they belong, so nothing has to be late.
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

/** New entries that are worth a change of the file; fewer are read each time they are asked for. */
const MIN_NEW_ENTRIES = 4_096;
/** How long it goes on before it gives way, in milliseconds. */
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

  /** Entries that are not in the sums yet. */
  behind(): number {
    const since = Math.max(this.#file.position.seq, readCompactedUpTo(this.#compactedUpTo));
    return Number(this.#newestEntry.get()?.["last"] ?? 0) - since;
  }

  /** Rows that are in the sums were pruned since: of no use before it is run. */
  get needsTrim(): boolean {
    const { position } = this.#file;
    return position.seq > 0 && position.compactedUpTo !== readCompactedUpTo(this.#compactedUpTo);
  }

  /** Once for all that ask. `hurry`: a report waits for it. `least`: fewer entries are not worth it. */
  run(hurry: boolean, least = MIN_NEW_ENTRIES): Promise<void> {
    this.#isUrgent ||= hurry;
    return (this.#running ??= this.#run(least).finally(() => {
      this.#running = undefined;
      this.#isUrgent = false;
    }));
  }

  /** Nothing is written while they are read; give it back. */
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

  /** What the rows that are gone were in is made anew of what is left there. */
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

  /** Others go first now and then. With nothing waiting it takes half of a processor at most. */
  async #yieldToOthers(began: number): Promise<number> {
    const took = performance.now() - began;
    if (took < STRIDE_MS) return began;
    await (this.#isUrgent ? setImmediate() : sleep(took));
    return performance.now();
  }

  /** Until nothing reads the sums. */
  async #waitForReaders(): Promise<void> {
    while (this.#readers > 0) await sleep(1);
  }
}
