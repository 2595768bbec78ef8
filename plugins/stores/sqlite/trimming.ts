// Rows that are in the sums were pruned, and what stands for them is told apart. Stretches of time that had some of them are made anew
// from what is left there, which mostly is one hour; all others stay as they are.
import { createSubtotals, DEPTHS, type Depth, readSubtotals, type Subtotals } from "tollgate/store";
import type { KnownFacts } from "./known-facts.ts";
import { CHAPTER, chapterOf } from "./mention.ts";
import { Pending, textOf } from "./pending.ts";
import type { Stored } from "./stored.ts";
import {
  DAY,
  HOUR,
  hourOf,
  QUARTER,
  quarterOf,
  type SumsFile,
  type Trimmed,
  type UpTo,
} from "./sums-file.ts";

/** Hours with rows on both sides, and groups in them. Where times are more at odds, all is summed up anew. */
const MOST_HOURS = 48;
const MOST_GROUPS = 100_000;

export class Trimming {
  readonly #file: SumsFile;
  readonly #after: UpTo;
  readonly #pruned: number;
  /** Hours in which rows were that are gone. */
  readonly #hours: ReadonlySet<number>;
  readonly #pending: Pending;
  readonly #mixed: number;
  /** Where the rows are that are left in those hours. */
  readonly stretches: readonly (readonly [first: number, end: number])[];

  /** `pruned`: up to that entry. */
  constructor(file: SumsFile, facts: KnownFacts, pruned: number) {
    const edge = chapterOf(pruned + 1);
    this.#file = file;
    this.#after = file.upTo;
    this.#pruned = pruned;
    this.#hours = new Set(file.quartersUpTo(edge).map(hourOf));
    this.#pending = new Pending(facts, this.#after, this.#hours);
    const chapters = new Set<number>();
    let mixed = 0;
    for (const hour of this.#hours) {
      const left = quartersOf(hour)
        .flatMap((quarter) => file.chapters(quarter))
        .filter((chapter) => chapter >= edge);
      if (left.length > 0) mixed++;
      for (const chapter of left) chapters.add(chapter);
    }
    this.#mixed = mixed;
    this.stretches = [...chapters]
      .sort((a, b) => a - b)
      .map((chapter) => [
        Math.max(chapter * CHAPTER, pruned + 1),
        Math.min((chapter + 1) * CHAPTER, this.#after.seq + 1),
      ]);
  }

  get fits(): boolean {
    return this.#mixed <= MOST_HOURS && this.#pending.groups <= MOST_GROUPS;
  }

  add(stored: Stored): void {
    this.#pending.count(stored);
  }

  write(): void {
    if (!this.fits) return this.#file.empty();
    const left = new Map<string, Subtotals>();
    for (const [depth, span, start, sums] of this.#pending.all())
      left.set(`${depth} ${span} ${start}`, sums);
    return this.#file.trim(this.#after, {
      pruned: this.#pruned,
      edge: chapterOf(this.#pruned + 1),
      sums: this.#sums(left),
    });
  }

  *#sums(left: ReadonlyMap<string, Subtotals>): Generator<Trimmed, void> {
    const { at: now } = this.#after;
    const text = (sums: Subtotals | undefined, end: number) =>
      sums && { sums: textOf(sums, end <= now) };
    const days = new Set<number>();
    for (const hour of this.#hours) {
      days.add(Math.floor(hour / DAY) * DAY);
      for (const quarter of quartersOf(hour)) {
        const id = `${DEPTHS[0]} ${QUARTER} ${quarter}`;
        yield [DEPTHS[0], QUARTER, quarter, text(left.get(id), quarter + QUARTER)];
      }
      for (const depth of DEPTHS)
        yield [depth, HOUR, hour, text(left.get(`${depth} ${HOUR} ${hour}`), hour + HOUR)];
    }
    for (const day of days)
      for (const depth of DEPTHS) {
        const sums = this.#day(depth, day, left);
        yield [depth, DAY, day, sums === "many" ? { sums: undefined } : text(sums, day + DAY)];
      }
  }

  /** Of its hours. "many": of one of them there is no sum. */
  #day(
    depth: Depth,
    day: number,
    left: ReadonlyMap<string, Subtotals>,
  ): Subtotals | "many" | undefined {
    const whole = createSubtotals(depth);
    for (const { start, sums } of this.#file.during(depth, HOUR, day, day + DAY)) {
      if (this.#hours.has(start)) continue;
      if (sums === undefined) return "many";
      whole.take(readSubtotals(sums));
    }
    for (let hour = day; hour < day + DAY; hour += HOUR) {
      const own = this.#hours.has(hour) ? left.get(`${depth} ${HOUR} ${hour}`) : undefined;
      if (own) whole.take(own);
    }
    return whole.rows === 0 ? undefined : whole;
  }
}

const quartersOf = (hour: number): number[] =>
  Array.from({ length: HOUR / QUARTER }, (_, i) => quarterOf(hour) + i * QUARTER);
