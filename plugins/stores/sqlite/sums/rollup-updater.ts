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
import { PendingRollups, serializeRollup } from "./pending-rollups.ts";
import { COMPACTED_UP_TO_SQL, readCompactedUpTo } from "../data/checkpoint.ts";
import { BATCH_COLUMNS, type StoredBatch } from "../data/stored-batch.ts";
import {
  type RollupFile,
  DAY_MS,
  HOUR_MS,
  hourStart,
  QUARTER_HOUR_MS,
  type TrimmedSpan,
  type RollupPosition,
} from "./rollup-file.ts";
import {
  createRollup,
  ROLLUP_LEVELS,
  type RollupLevel,
  parseRollup,
  type Rollup,
  quarterStart,
} from "tollgate/store";
import { CHAPTER_ENTRIES, chapterOf } from "../data/key-index.ts";

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

// Rebuilds rollups after a compaction. Checkpoint rollups cover the compacted rows, so rollups with
// these rows are recomputed from the remaining rows. This usually affects one hour. All other
// rollups are unchanged.

/**
 * Maximum number of hours that contain both compacted and remaining rows, and of groups in them. If
 * there are more, all rollups are rebuilt.
 */
const MAX_HOURS = 48;
const MAX_GROUPS = 100_000;

class RollupTrim {
  readonly #file: RollupFile;
  readonly #position: RollupPosition;
  readonly #compactedUpTo: number;
  /** Hours that had compacted rows. */
  readonly #affectedHours: ReadonlySet<number>;
  readonly #pending: PendingRollups;
  readonly #mixedHours: number;
  /** Entry ranges that contain the remaining rows of these hours. */
  readonly remainingRanges: readonly (readonly [first: number, end: number])[];

  /**
   * @param pruned The last compacted entry.
   */
  constructor(file: RollupFile, facts: DimensionCache, pruned: number) {
    const edge = chapterOf(pruned + 1);
    this.#file = file;
    this.#position = file.position;
    this.#compactedUpTo = pruned;
    this.#affectedHours = new Set(file.quartersUpTo(edge).map(hourStart));
    this.#pending = new PendingRollups(facts, this.#position, this.#affectedHours);
    const chapters = new Set<number>();
    let mixed = 0;
    for (const hour of this.#affectedHours) {
      const left = quartersOfHour(hour)
        .flatMap((quarter) => file.chaptersOf(quarter))
        .filter((chapter) => chapter >= edge);
      if (left.length > 0) mixed++;
      for (const chapter of left) chapters.add(chapter);
    }
    this.#mixedHours = mixed;
    this.remainingRanges = [...chapters]
      .sort((a, b) => a - b)
      .map((chapter) => [
        Math.max(chapter * CHAPTER_ENTRIES, pruned + 1),
        Math.min((chapter + 1) * CHAPTER_ENTRIES, this.#position.seq + 1),
      ]);
  }

  get hasRoom(): boolean {
    return this.#mixedHours <= MAX_HOURS && this.#pending.groupCount <= MAX_GROUPS;
  }

  add(stored: StoredBatch): void {
    this.#pending.addRows(stored);
  }

  write(): void {
    if (!this.hasRoom) return this.#file.clear();
    const left = new Map<string, Rollup>();
    for (const [depth, span, start, sums] of this.#pending.all())
      left.set(`${depth} ${span} ${start}`, sums);
    return this.#file.trim(this.#position, {
      pruned: this.#compactedUpTo,
      edge: chapterOf(this.#compactedUpTo + 1),
      sums: this.#trimmedSpans(left),
    });
  }

  *#trimmedSpans(left: ReadonlyMap<string, Rollup>): Generator<TrimmedSpan, void> {
    const { at: now } = this.#position;
    const text = (sums: Rollup | undefined, end: number) =>
      sums && { sums: serializeRollup(sums, end <= now) };
    const days = new Set<number>();
    for (const hour of this.#affectedHours) {
      days.add(Math.floor(hour / DAY_MS) * DAY_MS);
      for (const quarter of quartersOfHour(hour)) {
        const id = `${ROLLUP_LEVELS[0]} ${QUARTER_HOUR_MS} ${quarter}`;
        yield [
          ROLLUP_LEVELS[0],
          QUARTER_HOUR_MS,
          quarter,
          text(left.get(id), quarter + QUARTER_HOUR_MS),
        ];
      }
      for (const depth of ROLLUP_LEVELS)
        yield [depth, HOUR_MS, hour, text(left.get(`${depth} ${HOUR_MS} ${hour}`), hour + HOUR_MS)];
    }
    for (const day of days)
      for (const depth of ROLLUP_LEVELS) {
        const sums = this.#mergeDay(depth, day, left);
        yield [
          depth,
          DAY_MS,
          day,
          sums === "many" ? { sums: undefined } : text(sums, day + DAY_MS),
        ];
      }
  }

  /**
   * Merges the rollups of the hours of a day. Returns "many" if an hour has too many groups for a
   * rollup.
   */
  #mergeDay(
    depth: RollupLevel,
    day: number,
    left: ReadonlyMap<string, Rollup>,
  ): Rollup | "many" | undefined {
    const whole = createRollup(depth);
    for (const { start, rollup } of this.#file.rollupsBetween(depth, HOUR_MS, day, day + DAY_MS)) {
      if (this.#affectedHours.has(start)) continue;
      if (rollup === undefined) return "many";
      whole.merge(parseRollup(rollup));
    }
    for (let hour = day; hour < day + DAY_MS; hour += HOUR_MS) {
      const own = this.#affectedHours.has(hour)
        ? left.get(`${depth} ${HOUR_MS} ${hour}`)
        : undefined;
      if (own) whole.merge(own);
    }
    return whole.rows === 0 ? undefined : whole;
  }
}

const quartersOfHour = (hour: number): number[] =>
  Array.from(
    { length: HOUR_MS / QUARTER_HOUR_MS },
    (_, i) => quarterStart(hour) + i * QUARTER_HOUR_MS,
  );
