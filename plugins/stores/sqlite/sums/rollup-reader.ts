// What of a report is told by sums that were made before, and what is left to be read: stretches that the report cuts, or that hold too
// many groups to be summed up, and what came after the sums.
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

/** What of it a report took. */
export interface UnsummarizedCoverage {
  /** The last entry in it. */
  readonly upTo: number;
  /** Rows of these quarters of an hour are to be read: what is asked for cuts them. */
  readonly quarters: ReadonlySet<number>;
}

/** How long it goes on before it gives way, in milliseconds. */
const STRIDE_MS = 8;

/** No row is later than a Date can say. */
const MAX_TIME_MS = 9e15;

/** What is not in the sums that were taken. */
export interface RollupGap {
  /** Every row after this entry. */
  readonly after: number;
  /** Up to that entry, rows of these quarters of an hour. */
  readonly quarters: ReadonlySet<number>;
  /** Where those begin: chapters, in order. */
  readonly chapters: readonly (readonly [first: number, end: number])[];
  /** What came after that entry, as far as it was taken as well. */
  readonly unsummarized?: UnsummarizedCoverage | undefined;
}

/** Totals, and what the hashes of labels stand for. */
export interface TotalsTarget {
  readonly totals: Totals;
  readonly resolveLabels: (of: RowDimensions) => RowDimensions;
}

/** Adds what is known to the totals. Nothing is written to the file meanwhile. */
export async function addRollupsTo(
  file: RollupFile,
  depth: RollupLevel,
  asked: TotalsQuery,
  { totals: into, resolveLabels }: TotalsTarget,
  still: ReadToken | undefined,
): Promise<RollupGap> {
  const { seq: after } = file.position;
  const quarters = new Set<number>();
  let began = performance.now();
  for (const one of coveringRollups(file, depth, asked)) {
    if (one.rollup === undefined) quarters.add(one.start);
    else
      for (const [facts, amounts] of parseRollupGroups(one.rollup))
        into.addGroup(resolveLabels(facts), amounts, one.start, asked);
    if (performance.now() - began < STRIDE_MS) continue;
    await setImmediate();
    if (still?.isWanted === false) break;
    began = performance.now();
  }
  if (file.position.seq !== after) throw new Error("The sums were changed while they were read.");
  return { after, quarters, chapters: chapterRanges(file, quarters) };
}

/** Whether a stretch lies whole in what is asked for, and in one group of its time. */
export function createSpanFilter({ by, zone, from = -Infinity, to = Infinity }: TotalsQuery) {
  const clock = zoneClock(zone);
  const unit = by.includes("hour") ? "hour" : by.includes("day") ? "day" : undefined;
  return (start: number, span: number): boolean =>
    start >= from &&
    start + span <= to &&
    (unit === undefined || clock.isWithin(unit, start, start + span));
}

/** The longest stretches that lie whole in what is asked for, and in one group of its time; and quarters that are to be read. */
function* coveringRollups(file: RollupFile, depth: RollupLevel, asked: TotalsQuery) {
  const { from = -Infinity, to = Infinity } = asked;
  const isWhole = createSpanFilter(asked);
  const spans = depth === "calls" ? SPANS_MS : LONG_SPANS_MS;

  function* of(level: number, begin: number, end: number): Generator<CoveredSpan, void> {
    const span = spans[level]!;
    for (const { start, rollup } of file.rollupsBetween(depth, span, begin, end)) {
      // Of the first day there may be hours that nothing is asked of.
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
  /** Undefined: to be read. */
  readonly rollup: string | undefined;
}

/** Chapters that follow on one another are one stretch. */
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
