// Answers the part of a report that existing rollups cover, and determines the remaining part. The
// remaining part consists of spans that the report cuts, spans with too many groups for a rollup,
// and entries after the rollups.
import { setImmediate } from "node:timers/promises";
import {
  type RollupLevel,
  parseRollupGroups,
  type RowDimensions,
  type Totals,
  type TotalsQuery,
  zoneClock,
} from "tollgate/store";
import { CHAPTER_ENTRIES } from "../data/key-index.ts";
import type { ReadToken } from "../data/batch-reader.ts";
import { LONG_SPANS_MS, QUARTER_HOUR_MS, SPANS_MS, type RollupFile } from "./rollup-file.ts";

/** The part of the entries after the rollups that was added from memory. */
export interface UnsummarizedCoverage {
  /** The last entry that the rollups cover. */
  readonly upTo: number;
  /** Quarters of an hour whose rows must be read, because the query cuts them. */
  readonly quarters: ReadonlySet<number>;
}

/** Maximum run time before yielding, in milliseconds. */
const STRIDE_MS = 8;

/** Upper bound for row times. It is larger than the maximum of a `Date`. */
const MAX_TIME_MS = 9e15;

/** The rows that the rollups do not cover. */
export interface RollupGap {
  /** All rows after this entry must be read. */
  readonly after: number;
  /** Quarters of an hour whose rows up to entry `after` must be read. */
  readonly quarters: ReadonlySet<number>;
  /** Entry ranges of the chapters that contain these quarters, in order. */
  readonly chapters: readonly (readonly [first: number, end: number])[];
  /** The part after entry `after` that was added from memory. */
  readonly unsummarized?: UnsummarizedCoverage | undefined;
}

/** Totals to add to, and the resolver for label hashes. */
export interface TotalsTarget {
  readonly totals: Totals;
  readonly resolveLabels: (of: RowDimensions) => RowDimensions;
}

/**
 * Adds matching rollups to the totals.
 * @throws If the file was written meanwhile.
 */
export async function addRollupsTo(
  file: RollupFile,
  depth: RollupLevel,
  query: TotalsQuery,
  { totals: into, resolveLabels }: TotalsTarget,
  still: ReadToken | undefined,
): Promise<RollupGap> {
  const { seq: after } = file.position;
  const quarters = new Set<number>();
  let began = performance.now();
  for (const one of coveringRollups(file, depth, query)) {
    if (one.rollup === undefined) quarters.add(one.start);
    else
      for (const [facts, amounts] of parseRollupGroups(one.rollup))
        into.addGroup(resolveLabels(facts), amounts, one.start, query);
    if (performance.now() - began < STRIDE_MS) continue;
    await setImmediate();
    if (still?.isWanted === false) break;
    began = performance.now();
  }
  if (file.position.seq !== after)
    throw new Error("The rollups were changed while they were read.");
  return { after, quarters, chapters: chapterRanges(file, quarters) };
}

/**
 * Creates a filter that returns whether a time span is entirely inside the query range and inside
 * one time group.
 */
export function createSpanFilter({ by, zone, from = -Infinity, to = Infinity }: TotalsQuery) {
  const clock = zoneClock(zone);
  const unit = by.includes("hour") ? "hour" : by.includes("day") ? "day" : undefined;
  return (start: number, span: number): boolean =>
    start >= from &&
    start + span <= to &&
    (unit === undefined || clock.isWithin(unit, start, start + span));
}

/**
 * Yields the longest spans that are completely inside the query range and inside one time group.
 * Also yields the quarter hours whose rows must be read.
 */
function* coveringRollups(file: RollupFile, depth: RollupLevel, query: TotalsQuery) {
  const { from = -Infinity, to = Infinity } = query;
  const isWhole = createSpanFilter(query);
  const spans = depth === "calls" ? SPANS_MS : LONG_SPANS_MS;

  function* of(level: number, begin: number, end: number): Generator<CoveredSpan, void> {
    const span = spans[level]!;
    for (const { start, rollup } of file.rollupsBetween(depth, span, begin, end)) {
      // The first day can contain hours outside the query range.
      if (start + span <= from || start >= to) continue;
      if (rollup !== undefined && isWhole(start, span)) yield { start, rollup };
      else if (level + 1 < spans.length) yield* of(level + 1, start, start + span);
      else
        for (let each = start; each < start + span; each += QUARTER_HOUR_MS)
          if (each + QUARTER_HOUR_MS > from && each < to) yield { start: each, rollup: undefined };
    }
  }
  const [longest] = SPANS_MS;
  yield* of(
    0,
    Math.max(-MAX_TIME_MS, Math.floor(from / longest) * longest),
    Math.min(to, MAX_TIME_MS),
  );
}

interface CoveredSpan {
  readonly start: number;
  /** Undefined if the rows of the span must be read. */
  readonly rollup: string | undefined;
}

/** Returns the entry ranges of the chapters. Consecutive chapters are merged into one range. */
function chapterRanges(file: RollupFile, quarters: ReadonlySet<number>): [number, number][] {
  const chapters = new Set<number>();
  for (const quarter of quarters)
    for (const chapter of file.chaptersOf(quarter)) chapters.add(chapter);
  const spans: [number, number][] = [];
  for (const chapter of [...chapters].sort((a, b) => a - b)) {
    const last = spans.at(-1);
    const first = chapter * CHAPTER_ENTRIES;
    if (last && last[1] === first) last[1] += CHAPTER_ENTRIES;
    else spans.push([first, first + CHAPTER_ENTRIES]);
  }
  return spans;
}
