// Rebuilds rollups after a compaction. Checkpoint rollups cover the compacted rows, so rollups with
// these rows are recomputed from the remaining rows. Usually this affects one hour. All other
// rollups are unchanged.
import {
  createRollup,
  ROLLUP_LEVELS,
  type RollupLevel,
  parseRollup,
  type Rollup,
  quarterStart,
} from "tollgate/store";
import type { DimensionCache } from "../data/dimension-cache.ts";
import { CHAPTER_ENTRIES, chapterOf } from "../data/key-index.ts";
import { PendingRollups, serializeRollup } from "./pending-rollups.ts";
import type { StoredBatch } from "../data/stored-batch.ts";
import {
  DAY_MS,
  HOUR_MS,
  hourStart,
  QUARTER_HOUR_MS,
  type RollupFile,
  type TrimmedSpan,
  type RollupPosition,
} from "./rollup-file.ts";

/**
 * Maximum number of hours with both compacted and remaining rows, and of groups in them. Above
 * these limits, all rollups are rebuilt.
 */
const MAX_HOURS = 48;
const MAX_GROUPS = 100_000;

export class RollupTrim {
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
   * Creates a trim.
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
