// What of a report is told by sums that were made before, and what is left to be read: stretches that the report cuts, or that hold too
// many groups to be summed up, and what came after the sums.
import { setImmediate } from "node:timers/promises";
import {
  type Depth,
  groupsOf,
  type RowFacts,
  type Totals,
  type TotalsQuery,
  zoneClock,
} from "tollgate/store";
import { CHAPTER } from "./mention.ts";
import type { Still } from "./reader.ts";
import { LONGER, QUARTER, SPANS, type SumsFile } from "./sums-file.ts";
import type { TakenTail } from "./tail.ts";

/** How long it goes on before it gives way, in milliseconds. */
const STRIDE_MS = 8;

/** No row is later than a Date can say. */
const FARTHEST = 9e15;

/** What is not in the sums that were taken. */
export interface Unsummed {
  /** Every row after this entry. */
  readonly after: number;
  /** Up to that entry, rows of these quarters of an hour. */
  readonly quarters: ReadonlySet<number>;
  /** Where those begin: chapters, in order. */
  readonly chapters: readonly (readonly [first: number, end: number])[];
  /** What came after that entry, as far as it was taken as well. */
  readonly tail?: TakenTail | undefined;
}

/** Totals, and what the hashes of labels stand for. */
export interface TakenInto {
  readonly sums: Totals;
  readonly speak: (of: RowFacts) => RowFacts;
}

/** Adds what is known to the totals. Nothing is written to the file meanwhile. */
export async function takeSums(
  file: SumsFile,
  depth: Depth,
  asked: TotalsQuery,
  { sums: into, speak }: TakenInto,
  still: Still | undefined,
): Promise<Unsummed> {
  const { seq: after } = file.upTo;
  const quarters = new Set<number>();
  let began = performance.now();
  for (const one of covering(file, depth, asked)) {
    if (one.sums === undefined) quarters.add(one.start);
    else
      for (const [facts, amounts] of groupsOf(one.sums))
        into.take(speak(facts), amounts, one.start, asked);
    if (performance.now() - began < STRIDE_MS) continue;
    await setImmediate();
    if (still?.wanted === false) break;
    began = performance.now();
  }
  if (file.upTo.seq !== after) throw new Error("The sums were changed while they were read.");
  return { after, quarters, chapters: spansOf(file, quarters) };
}

/** Whether a stretch lies whole in what is asked for, and in one group of its time. */
export function wholeIn({ by, zone, from = -Infinity, to = Infinity }: TotalsQuery) {
  const clock = zoneClock(zone);
  const unit = by.includes("hour") ? "hour" : by.includes("day") ? "day" : undefined;
  return (start: number, span: number): boolean =>
    start >= from &&
    start + span <= to &&
    (unit === undefined || clock.within(unit, start, start + span));
}

/** The longest stretches that lie whole in what is asked for, and in one group of its time; and quarters that are to be read. */
function* covering(file: SumsFile, depth: Depth, asked: TotalsQuery) {
  const { from = -Infinity, to = Infinity } = asked;
  const isWhole = wholeIn(asked);
  const spans = depth === "calls" ? SPANS : LONGER;

  function* of(level: number, begin: number, end: number): Generator<Covered, void> {
    const span = spans[level]!;
    for (const { start, sums } of file.during(depth, span, begin, end)) {
      // Of the first day there may be hours that nothing is asked of.
      if (start + span <= from || start >= to) continue;
      if (sums !== undefined && isWhole(start, span)) yield { start, sums };
      else if (level + 1 < spans.length) yield* of(level + 1, start, start + span);
      else
        for (let each = start; each < start + span; each += QUARTER)
          if (each + QUARTER > from && each < to) yield { start: each, sums: undefined };
    }
  }
  const [longest] = SPANS;
  yield* of(0, Math.max(-FARTHEST, Math.floor(from / longest) * longest), Math.min(to, FARTHEST));
}

interface Covered {
  readonly start: number;
  /** Undefined: to be read. */
  readonly sums: string | undefined;
}

/** Chapters that follow on one another are one stretch. */
function spansOf(file: SumsFile, quarters: ReadonlySet<number>): [number, number][] {
  const chapters = new Set<number>();
  for (const quarter of quarters)
    for (const chapter of file.chapters(quarter)) chapters.add(chapter);
  const spans: [number, number][] = [];
  for (const chapter of [...chapters].sort((a, b) => a - b)) {
    const last = spans.at(-1);
    const first = chapter * CHAPTER;
    if (last && last[1] === first) last[1] += CHAPTER;
    else spans.push([first, first + CHAPTER]);
  }
  return spans;
}
